"""Leases: who works on what, told to others and renewed while they live."""

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

from unalike.experiments.database import clock, patient, queue, writing
from unalike.experiments.schema import LEASES

ZOMBIE = ("Z", "X")
SECONDS = 60.0
"""How long a lease holds that nobody renews."""


@dataclass(frozen=True)
class Holder:
    """A process that takes leases; others on its machine can see whether it lives."""

    host: str
    process: int
    mark: str

    @classmethod
    def here(cls) -> Holder:
        """This process."""
        return cls(platform.node(), os.getpid(), uuid4().hex[:8])

    @classmethod
    def named(cls, name: str) -> Holder:
        """The worker of a name."""
        host, process, mark = name.rsplit(" ", 2)
        return cls(host, int(process), mark)

    def __str__(self) -> str:
        return f"{self.host} {self.process} {self.mark}"

    @property
    def gone(self) -> bool:
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


@patient
def num_held(engine: Engine) -> int:
    """How many runs somebody works on who is, as far as can be seen, alive."""
    with engine.connect() as connection:
        return len(held(connection))


def held(connection: Connection) -> dict[str, str]:
    """The runs that somebody works on, and who."""
    asked = sql.select(LEASES).where(LEASES.c.expires > clock(connection))
    rows = connection.execute(asked).mappings()
    workers = {row["key"]: row["worker"] for row in rows}
    gone = {name for name in set(workers.values()) if Holder.named(name).gone}
    return {run: worker for run, worker in workers.items() if worker not in gone}


@dataclass
class Leases:
    """The leases of one worker."""

    engine: Engine
    seconds: float = SECONDS
    holder: Holder = field(default_factory=Holder.here)

    @property
    def _mine(self) -> sql.ColumnElement[bool]:
        return LEASES.c.worker == str(self.holder)

    @patient
    def of_others(self) -> set[str]:
        """The runs that others hold."""
        with self.engine.connect() as connection:
            return set(self._of_others(connection))

    def _of_others(self, connection: Connection) -> dict[str, str]:
        """Who else holds which runs."""
        own = str(self.holder)
        leases = held(connection).items()
        return {run: worker for run, worker in leases if worker != own}

    @patient
    def take(self, runs: Sequence[str]) -> bool:
        """Take all of some runs, or none where another holds one of them."""
        with writing(self.engine) as connection:
            queue(connection)
            others = self._of_others(connection)
            if not others.keys().isdisjoint(runs):
                return False
            past = LEASES.c.worker.not_in(set(others.values()))
            connection.execute(sql.delete(LEASES).where(past))
            until = clock(connection) + self.seconds
            lease = {"worker": str(self.holder), "expires": until}
            rows = [{"key": run, **lease} for run in runs]
            connection.execute(sql.insert(LEASES), rows)
            return True

    @patient
    def give_back(self) -> None:
        """Let others take what this worker has."""
        self._remove()

    def let_go(self) -> None:
        """The same in a hurry; a lease that stays behind runs out by itself."""
        with suppress(DBAPIError):
            self._remove()

    def _remove(self) -> None:
        with writing(self.engine) as connection:
            connection.execute(sql.delete(LEASES).where(self._mine))

    def renew(self) -> None:
        """Hold what this worker has for longer."""
        with writing(self.engine) as connection:
            until = clock(connection) + self.seconds
            longer = sql.update(LEASES).where(self._mine).values(expires=until)
            connection.execute(longer)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Renew the leases while the block runs."""
        stop = threading.Event()
        beat = threading.Thread(target=self._beat, args=(stop,), daemon=True)
        beat.start()
        try:
            yield
        finally:
            stop.set()
            beat.join()

    def _beat(self, stop: threading.Event) -> None:
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
