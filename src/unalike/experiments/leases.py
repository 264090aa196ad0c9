"""Leases with a heartbeat, so that no two workers train the same run."""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import parent_process
from uuid import uuid4

import sqlalchemy as sql
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError

from unalike.experiments.database_connection import (
    LEASES,
    database_time,
    lock_writers,
    retry_while_unreachable,
    write_transaction,
)
from unalike.system import is_process_alive, process_id_scope

LEASE_SECONDS = 60.0
"""How long a lease is valid without a heartbeat."""


@dataclass(frozen=True)
class WorkerId:
    """The host, process id and random token of a worker, as leases store it.

    The host is its name and the scope of its process ids; in leases of older versions
    it is the name alone.
    """

    host: str
    process: int
    token: str

    @classmethod
    def current(cls) -> WorkerId:
        return cls(current_host(), os.getpid(), uuid4().hex[:8])

    @classmethod
    def parse(cls, name: str) -> WorkerId:
        host, process, token = name.rsplit(" ", 2)
        return cls(host, int(process), token)

    def __str__(self) -> str:
        return f"{self.host} {self.process} {self.token}"

    @property
    def is_dead(self) -> bool:
        """Whether the process is known to be dead; unknown on another host."""
        return self.host == current_host() and not is_process_alive(self.process)


@cache
def current_host() -> str:
    """The name of this host and the scope of its process ids."""
    return f"{platform.node()} {process_id_scope()}"


@retry_while_unreachable
def count_active(engine: Engine) -> int:
    """The number of runs with an active lease."""
    with engine.connect() as connection:
        return len(active_leases(connection))


def active_leases(connection: Connection) -> dict[str, str]:
    """The workers of all active leases by run; leases of dead workers do not count."""
    query = sql.select(LEASES).where(LEASES.c.expires > database_time(connection))
    rows = connection.execute(query).mappings()
    workers = {row["key"]: row["worker"] for row in rows}
    dead = {name for name in set(workers.values()) if WorkerId.parse(name).is_dead}
    return {run: worker for run, worker in workers.items() if worker not in dead}


@dataclass
class Leases:
    """The leases of one worker."""

    engine: Engine
    seconds: float = LEASE_SECONDS
    worker: WorkerId = field(default_factory=WorkerId.current)

    @property
    def _is_own(self) -> sql.ColumnElement[bool]:
        return LEASES.c.worker == str(self.worker)

    @retry_while_unreachable
    def held_by_others(self) -> set[str]:
        """The runs that other workers have leased."""
        with self.engine.connect() as connection:
            return set(self._of_others(connection))

    def _of_others(self, connection: Connection) -> dict[str, str]:
        """The other workers with active leases, by run."""
        own = str(self.worker)
        leases = active_leases(connection).items()
        return {run: worker for run, worker in leases if worker != own}

    @retry_while_unreachable
    def acquire(self, runs: Sequence[str]) -> bool:
        """Lease all runs, or none if another worker has leased one of them."""
        with write_transaction(self.engine) as connection:
            lock_writers(connection)
            others = self._of_others(connection)
            if not others.keys().isdisjoint(runs):
                return False
            expired = LEASES.c.worker.not_in(set(others.values()))
            connection.execute(sql.delete(LEASES).where(expired))
            expires = database_time(connection) + self.seconds
            lease = {"worker": str(self.worker), "expires": expires}
            rows = [{"key": run, **lease} for run in runs]
            connection.execute(sql.insert(LEASES), rows)
            return True

    @retry_while_unreachable
    def release(self) -> None:
        self._remove()

    def release_quietly(self) -> None:
        """Delete the leases without retries; a lease that remains expires."""
        with suppress(DBAPIError):
            self._remove()

    def _remove(self) -> None:
        with write_transaction(self.engine) as connection:
            connection.execute(sql.delete(LEASES).where(self._is_own))

    def renew(self) -> None:
        with write_transaction(self.engine) as connection:
            expires = database_time(connection) + self.seconds
            update = sql.update(LEASES).where(self._is_own).values(expires=expires)
            connection.execute(update)

    @contextmanager
    def heartbeat(self) -> Iterator[None]:
        """Renew the leases while the block runs."""
        stop, loop = threading.Event(), self._heartbeat_loop
        thread = threading.Thread(target=loop, args=(stop,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _heartbeat_loop(self, stop: threading.Event) -> None:
        parent, renewed = parent_process(), time.monotonic()
        while not stop.wait(min(1.0, self.seconds / 3)):
            if parent is not None and not parent.is_alive():
                # The sweep that started this worker was killed.
                os._exit(1)
            if time.monotonic() - renewed < self.seconds / 3:
                continue
            # If the database stays unreachable, a lease is lost, but no result.
            with suppress(DBAPIError):
                self.renew()
                renewed = time.monotonic()
