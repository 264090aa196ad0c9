"""A PostgreSQL server of its own for a test, where the programs are there."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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


def _do(folder: Path, program: str, *words: str) -> None:
    user = _user()
    who = [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    become = ["setpriv", *who] if os.getuid() == 0 else []
    subprocess.run(
        [*become, str(PROGRAMS / program), *words],
        check=True,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@contextmanager
def server() -> Iterator[str]:
    """The address of a server that lives as long as the block."""
    folder = Path(tempfile.mkdtemp(prefix="unalike-pg-"))
    if os.getuid() == 0:
        os.chown(folder, _user().pw_uid, _user().pw_gid)
    cluster = str(folder / "cluster")
    try:
        _do(folder, "initdb", "-D", cluster, "-U", "test", "-A", "trust", "--no-sync")
        options = f"-k {folder} -c listen_addresses='' -c fsync=off"
        log = str(folder / "log")
        _do(folder, "pg_ctl", "-D", cluster, "-l", log, "-o", options, "-w", "start")
        try:
            yield f"postgresql://test@/postgres?host={folder}"
        finally:
            _do(folder, "pg_ctl", "-D", cluster, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
