"""Leases: who works on what, told to others and renewed while they live."""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import parent_process
from pathlib import Path
from uuid import uuid4

import sqlalchemy as sql
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError

from unalike.experiments.database import clock, insert_new, patient, writing
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
    """How many bundles somebody works on who is, as far as can be seen, alive."""
    with engine.connect() as connection:
        asked = sql.select(LEASES).where(LEASES.c.expires > clock(connection))
        rows = connection.execute(asked).mappings().all()
    return sum(not Holder.named(row["worker"]).gone for row in rows)


@dataclass
class Leases:
    """The leases of one worker."""

    engine: Engine
    seconds: float = SECONDS
    holder: Holder = field(default_factory=Holder.here)

    @patient
    def take(self, bundle: str) -> bool:
        """Take a bundle that is free, or whose worker is gone."""
        with writing(self.engine) as connection:
            now = clock(connection)
            lease = {"worker": str(self.holder), "expires": now + self.seconds}
            if insert_new(connection, LEASES, [{"bundle": bundle, **lease}]):
                return True
            held = sql.select(LEASES).where(LEASES.c.bundle == bundle)
            row = connection.execute(held.with_for_update()).mappings().one_or_none()
            if row is None:
                return False
            other = Holder.named(row["worker"])
            if other != self.holder and row["expires"] > now and not other.gone:
                return False
            again = sql.update(LEASES).where(LEASES.c.bundle == bundle)
            connection.execute(again.values(**lease))
            return True

    @patient
    def give_back(self, bundle: str) -> None:
        """Let others take a bundle."""
        self._remove(bundle)

    def let_go(self, bundle: str) -> None:
        """The same in a hurry; a lease that stays behind runs out by itself."""
        with suppress(DBAPIError):
            self._remove(bundle)

    def _remove(self, bundle: str) -> None:
        mine = (LEASES.c.bundle == bundle) & (LEASES.c.worker == str(self.holder))
        with writing(self.engine) as connection:
            connection.execute(sql.delete(LEASES).where(mine))

    def renew(self) -> None:
        """Hold what this worker has for longer."""
        mine = LEASES.c.worker == str(self.holder)
        with writing(self.engine) as connection:
            until = clock(connection) + self.seconds
            connection.execute(sql.update(LEASES).where(mine).values(expires=until))

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
