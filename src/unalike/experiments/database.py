"""The database: SQLite in a file, or PostgreSQL, opened for several processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, runtime_checkable

import sqlalchemy as sql
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, DBAPIError, OperationalError

from unalike.errors import UserError, lookup
from unalike.experiments.schema import METADATA

BUSY_SECONDS = 60
"""How long a process waits for another to finish writing."""
LOCK = 0x756E616C
"""The number under which PostgreSQL knows that somebody writes alone."""
WRITES = "writes"
AWAY_SECONDS = 600.0
"""How long to wait for a server that went away."""
TRY_SECONDS = 1.0
"""Between two tries to reach it."""
REMARK = "remark"
NETWORK = {
    "connect_timeout": "10",
    "tcp_user_timeout": "30000",
    "keepalives_idle": "10",
    "keepalives_interval": "10",
    "keepalives_count": "3",
}
"""When to take a silent server for lost; the network itself waits for hours."""
HURRY = "SET LOCAL idle_in_transaction_session_timeout = '30s'"
"""A host that is cut off while it writes must not keep its locks."""

INSERTS: dict[str, Callable[[sql.Table], Any]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}
"""Inserts that can leave alone what is there already, by the kind of database."""


Told = ParamSpec("Told")
Answer = TypeVar("Answer")


@runtime_checkable
class Opened(Protocol):
    """What has a database, or is one."""

    @property
    def engine(self) -> Engine: ...


Base = TypeVar("Base", bound=Opened)


def connect(url: str, remark: Callable[[str], None] = lambda what: None) -> Engine:
    """Open a database and make its tables where they are missing."""
    engine = sql.create_engine(_parsed(url), execution_options={REMARK: remark})
    try:
        if engine.dialect.name == "sqlite":
            sql.event.listen(engine, "connect", _tune)
            sql.event.listen(engine, "begin", _begin)
        else:
            sql.event.listen(engine, "begin", _hurry)
        with writing(engine) as connection:
            queue(connection)
            METADATA.create_all(connection)
    except DatabaseError as error:
        raise UserError(f"{url} cannot be opened: {error.orig}.") from None
    return engine


def is_there(url: str) -> bool:
    """Is there a database already? Of a server that is taken for granted."""
    file = _parsed(url).database
    return not url.startswith("sqlite") or bool(file and Path(file).exists())


def _parsed(url: str) -> URL:
    try:
        told = make_url(url)
    except ArgumentError:
        raise UserError(
            f"'{url}' names no database; write sqlite:///results.db "
            "or postgresql://user@host/name."
        ) from None
    lookup(INSERTS, told.get_backend_name(), "kind of database")
    if told.get_backend_name() == "postgresql":
        if not find_spec("psycopg"):
            raise UserError(
                "PostgreSQL needs psycopg: pip install 'unalike[postgres]'."
            )
        query = {**NETWORK, **told.query}
        return told.set(drivername="postgresql+psycopg", query=query)
    return told


def patient(
    work: Callable[Concatenate[Base, Told], Answer],
) -> Callable[Concatenate[Base, Told], Answer]:
    """Work that is tried again while the server is away, and says so once.

    What it does may be done twice: nobody knows whether a server that was lost while
    it stored something has stored it.
    """

    @wraps(work)
    def trying(opened: Base, /, *args: Told.args, **how: Told.kwargs) -> Answer:
        gone: float | None = None
        while True:
            try:
                return work(opened, *args, **how)
            except DBAPIError as error:
                if not _is_away(opened.engine, error):
                    raise
                gone = gone or _tell_away(opened.engine, error)
                if time.monotonic() > gone + AWAY_SECONDS:
                    raise UserError(
                        f"The database is still away ({_first_line(error)}); the same "
                        "command goes on from what is stored."
                    ) from None
                time.sleep(TRY_SECONDS)

    return trying


def _is_away(engine: Engine, error: DBAPIError) -> bool:
    lost = error.connection_invalidated or isinstance(error, OperationalError)
    return engine.dialect.name == "postgresql" and lost


def _tell_away(engine: Engine, error: DBAPIError) -> float:
    """Say that the database is away; when that was."""
    engine.get_execution_options()[REMARK](
        f"The database is away ({_first_line(error)}); "
        f"trying again for {AWAY_SECONDS / 60:g} minutes."
    )
    return time.monotonic()


def _first_line(error: DBAPIError) -> str:
    return str(error.orig).partition("\n")[0]


def writing(engine: Engine) -> Any:
    """A transaction that writes, whole or not at all."""
    return engine.execution_options(**{WRITES: True}).begin()


def queue(connection: Connection) -> None:
    """Wait for all others who write alone; SQLite lets nobody else write anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(sql.select(sql.func.pg_advisory_xact_lock(LOCK)))


def insert_new(
    connection: Connection, table: sql.Table, rows: Sequence[Mapping[str, Any]]
) -> int:
    """Insert rows whose key is new; how many there were."""
    # Not every driver counts rows truly where some of them conflict; what the
    # database returns is certain.
    insert = INSERTS[connection.dialect.name](table).on_conflict_do_nothing()
    insert = insert.returning(*table.primary_key)
    values = [{column.name: row[column.name] for column in table.c} for row in rows]
    return sum(len(connection.execute(insert, one).all()) for one in values)


def clock(connection: Connection) -> float:
    """Seconds since 1970 by the clock that all who share the database go by."""
    if connection.dialect.name == "postgresql":
        now = sql.func.extract("epoch", sql.func.clock_timestamp())
        return float(connection.execute(sql.select(now)).scalar_one())
    return time.time()


def _tune(connection: Any, _: Any) -> None:
    """Let one write while others read, and wait for each other."""
    # Python's own transactions begin late; ours begin where SQLAlchemy says so.
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {1000 * BUSY_SECONDS}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")


def _begin(connection: Connection) -> None:
    """Writers queue before they read: one that turned writer later could only fail."""
    writes = connection.get_execution_options().get(WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _hurry(connection: Connection) -> None:
    if connection.get_execution_options().get(WRITES):
        connection.exec_driver_sql(HURRY)
