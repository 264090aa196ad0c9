"""The database: SQLite in a file, or PostgreSQL, opened for several processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError

from unalike.errors import UserError, lookup
from unalike.experiments.schema import METADATA

BUSY_SECONDS = 60
"""How long a process waits for another to finish writing."""
LOCK = 0x756E616C
"""The number under which PostgreSQL knows that somebody makes the tables."""
WRITES = "writes"

INSERTS: dict[str, Callable[[sql.Table], Any]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}
"""Inserts that can leave alone what is there already, by the kind of database."""


def connect(url: str) -> Engine:
    """Open a database and make its tables where they are missing."""
    engine = sql.create_engine(_parsed(url))
    try:
        if engine.dialect.name == "sqlite":
            sql.event.listen(engine, "connect", _tune)
            sql.event.listen(engine, "begin", _begin)
        with writing(engine) as connection:
            if engine.dialect.name == "postgresql":
                connection.execute(sql.select(sql.func.pg_advisory_xact_lock(LOCK)))
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
        return told.set(drivername="postgresql+psycopg")
    return told


def writing(engine: Engine) -> Any:
    """A transaction that writes, whole or not at all."""
    return engine.execution_options(**{WRITES: True}).begin()


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
