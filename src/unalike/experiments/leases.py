"""Leases with heartbeat on a shared database, so that no two workers do the same run."""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import parent_process
from pathlib import Path
from uuid import uuid4

import sqlalchemy as sql
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError

from unalike.experiments.database import (
    LEASES,
    database_time,
    lock_writers,
    retry_while_unreachable,
    write_transaction,
)

ZOMBIE = ("Z", "X")
LEASE_SECONDS = 60.0
"""How long a lease holds that nobody renews."""


@dataclass(frozen=True)
class WorkerId:
    """A process that takes leases; others on its machine can see whether it lives."""

    host: str
    process: int
    token: str

    @classmethod
    def current(cls) -> WorkerId:
        """This process."""
        return cls(platform.node(), os.getpid(), uuid4().hex[:8])

    @classmethod
    def parse(cls, name: str) -> WorkerId:
        """The worker of a name."""
        host, process, mark = name.rsplit(" ", 2)
        return cls(host, int(process), mark)

    def __str__(self) -> str:
        return f"{self.host} {self.process} {self.token}"

    @property
    def is_dead(self) -> bool:
        """Is it certain that the process lives no more?"""
        if self.host != platform.node():
            return False
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return is_zombie(self.process)


def is_zombie(process: int) -> bool:
    """Is a process dead whose parent has not asked for it yet?"""
    try:
        told = Path(f"/proc/{process}/stat").read_text("utf-8")
    except OSError:
        return False
    # The name of the program stands before, in brackets, and may hold anything.
    return told.rpartition(")")[2].split()[0] in ZOMBIE


@retry_while_unreachable
def count_active(engine: Engine) -> int:
    """How many runs somebody works on who is, as far as can be seen, alive."""
    with engine.connect() as connection:
        return len(active_leases(connection))


def active_leases(connection: Connection) -> dict[str, str]:
    """The runs that somebody works on, and who."""
    asked = sql.select(LEASES).where(LEASES.c.expires > database_time(connection))
    rows = connection.execute(asked).mappings()
    workers = {row["key"]: row["worker"] for row in rows}
    gone = {name for name in set(workers.values()) if WorkerId.parse(name).is_dead}
    return {run: worker for run, worker in workers.items() if worker not in gone}


@dataclass
class Leases:
    """The leases of one worker."""

    engine: Engine
    seconds: float = LEASE_SECONDS
    holder: WorkerId = field(default_factory=WorkerId.current)

    @property
    def _mine(self) -> sql.ColumnElement[bool]:
        return LEASES.c.worker == str(self.holder)

    @retry_while_unreachable
    def held_by_others(self) -> set[str]:
        """The runs that others hold."""
        with self.engine.connect() as connection:
            return set(self._of_others(connection))

    def _of_others(self, connection: Connection) -> dict[str, str]:
        """Who else holds which runs."""
        own = str(self.holder)
        leases = active_leases(connection).items()
        return {run: worker for run, worker in leases if worker != own}

    @retry_while_unreachable
    def acquire(self, runs: Sequence[str]) -> bool:
        """Take all of some runs, or none where another holds one of them."""
        with write_transaction(self.engine) as connection:
            lock_writers(connection)
            others = self._of_others(connection)
            if not others.keys().isdisjoint(runs):
                return False
            past = LEASES.c.worker.not_in(set(others.values()))
            connection.execute(sql.delete(LEASES).where(past))
            until = database_time(connection) + self.seconds
            lease = {"worker": str(self.holder), "expires": until}
            rows = [{"key": run, **lease} for run in runs]
            connection.execute(sql.insert(LEASES), rows)
            return True

    @retry_while_unreachable
    def release(self) -> None:
        """Let others take what this worker has."""
        self._remove()

    def release_quietly(self) -> None:
        """The same in a hurry; a lease that stays behind runs out by itself."""
        with suppress(DBAPIError):
            self._remove()

    def _remove(self) -> None:
        with write_transaction(self.engine) as connection:
            connection.execute(sql.delete(LEASES).where(self._mine))

    def renew(self) -> None:
        """Hold what this worker has for longer."""
        with write_transaction(self.engine) as connection:
            until = database_time(connection) + self.seconds
            longer = sql.update(LEASES).where(self._mine).values(expires=until)
            connection.execute(longer)

    @contextmanager
    def heartbeat(self) -> Iterator[None]:
        """Renew the leases while the block runs."""
        stop = threading.Event()
        beat = threading.Thread(target=self._heartbeat_loop, args=(stop,), daemon=True)
        beat.start()
        try:
            yield
        finally:
            stop.set()
            beat.join()

    def _heartbeat_loop(self, stop: threading.Event) -> None:
        parent, renewed = parent_process(), time.monotonic()
        while not stop.wait(min(1.0, self.seconds / 3)):
            if parent is not None and not parent.is_alive():
                # Whoever started this worker was killed: nobody wants its work.
                os._exit(1)
            if time.monotonic() - renewed < self.seconds / 3:
                continue
            # A database that is away for a moment costs a lease at worst, no result.
            with suppress(DBAPIError):
                self.renew()
                renewed = time.monotonic()
