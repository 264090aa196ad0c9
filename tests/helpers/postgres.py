"""A PostgreSQL server of its own for a test, where the programs are there."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HOMES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
PROGRAMS = HOMES[-1] if HOMES else None


def why_not() -> str:
    """Why there can be no server here; empty if there can."""
    if PROGRAMS is None or not (PROGRAMS / "postgres").exists():
        return "no PostgreSQL in /usr/lib/postgresql"
    if os.getuid() == 0 and not (shutil.which("setpriv") and _user()):
        return "PostgreSQL does not run as root, and there is nobody else to run it"
    return ""


def _user() -> pwd.struct_passwd | None:
    names = {user.pw_name: user for user in pwd.getpwall()}
    return names.get("postgres") or names.get("nobody")


@dataclass(frozen=True)
class Server:
    """A server that can go away and come back, here or on another host."""

    folder: Path
    enter: Callable[..., list[str]] = lambda *words: list(words)
    address: str = ""

    @property
    def url(self) -> str:
        return f"postgresql://test@/postgres?host={self.address or self.folder}"

    @property
    def here(self) -> str:
        """Its address for those who see its folder, whatever their network is."""
        return f"postgresql://test@/postgres?host={self.folder}"

    def make(self) -> None:
        """Write the empty databases."""
        self._do("initdb", "-U", "test", "-A", "trust", "--no-sync")
        with (self.folder / "cluster" / "pg_hba.conf").open("a") as rules:
            rules.write("host all all samenet trust\n")

    def start(self) -> None:
        """Begin to serve, as if nothing had been."""
        options = f"-k {self.folder} -c listen_addresses='{self.address}' -c fsync=off"
        self._do("pg_ctl", "-l", f"{self.folder}/log", "-o", options, "-w", "start")

    def stop(self) -> None:
        """Go away at once, whoever is connected."""
        self._do("pg_ctl", "-m", "immediate", "-w", "stop")

    def _do(self, program: str, *words: str) -> None:
        user = _user()
        who = [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        become = ["setpriv", *who] if os.getuid() == 0 else []
        there = ["-D", f"{self.folder}/cluster"]
        subprocess.run(
            self.enter(*become, str(PROGRAMS / program), *there, *words),
            check=True,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


@contextmanager
def serving(**where: Any) -> Iterator[Server]:
    """A server that lives as long as the block; skips where there can be none."""
    if reason := why_not():
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="unalike-pg-"))
    if os.getuid() == 0:
        os.chown(folder, _user().pw_uid, _user().pw_gid)
    one = Server(folder, **where)
    try:
        one.make()
        one.start()
        try:
            yield one
        finally:
            with suppress(subprocess.CalledProcessError):  # it may have gone away
                one.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
