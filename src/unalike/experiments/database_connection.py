"""Connect to a results database in SQLite or PostgreSQL: schema, locks, retries."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, runtime_checkable
from urllib.parse import quote

import sqlalchemy as sql
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, DBAPIError, OperationalError
from sqlalchemy.schema import CreateTable

from unalike.errors import UserError, first_line, lookup, require

METADATA = sql.MetaData()

DIGEST = sql.String(32)

RUNS = sql.Table(
    "runs",
    METADATA,
    sql.Column("key", DIGEST, primary_key=True),
    sql.Column("setting", DIGEST, nullable=False),
    sql.Column("shape", DIGEST, nullable=False, index=True),
    sql.Column("dataset", sql.Text, nullable=False),
    sql.Column("dataset_hash", DIGEST, nullable=False),
    sql.Column("method", sql.Text, nullable=False),
    sql.Column("options", sql.JSON, nullable=False),
    sql.Column("batching", sql.Text, nullable=False),
    sql.Column("view", sql.JSON, nullable=False),
    sql.Column("metric", sql.Text, nullable=False),
    sql.Column("split", sql.Integer, nullable=False),
    sql.Column("seed", sql.BigInteger, nullable=False),
    sql.Column("train", sql.Double, nullable=False),
    sql.Column("valid", sql.Double, nullable=False),
    sql.Column("test", sql.Double, nullable=False),
    sql.Column("best_epoch", sql.Integer),
    sql.Column("seconds", sql.Double, nullable=False),
    sql.Column("peak_memory_mb", sql.Double, nullable=False),
    sql.Column("device", sql.Text, nullable=False),
    sql.Column("versions", sql.JSON, nullable=False),
    sql.Column("commit", sql.Text, nullable=False),
    sql.Column("finished", sql.Double, nullable=False, index=True),
    sql.Index("by_setting", "dataset", "method", "setting"),
)
"""One row per finished run: its configuration, scores, device and versions."""

CURVES = sql.Table(
    "curves",
    METADATA,
    sql.Column("key", DIGEST, primary_key=True),
    sql.Column("curve", sql.LargeBinary, nullable=False),
)
"""Training curves, in their own table so that reading all runs is fast."""

ANSWERS = sql.Table(
    "answers",
    METADATA,
    sql.Column("key", DIGEST, primary_key=True),
    sql.Column("answers", sql.JSON, nullable=False),
)
"""Summaries of test predictions; runs of older versions have none.

A table of its own, as a missing table is created when a database is opened.
"""

FAILURES = sql.Table(
    "failures",
    METADATA,
    sql.Column("key", DIGEST, primary_key=True),
    sql.Column("setting", DIGEST, nullable=False),
    sql.Column("dataset", sql.Text, nullable=False),
    sql.Column("method", sql.Text, nullable=False),
    sql.Column("split", sql.Integer, nullable=False),
    sql.Column("error", sql.Text, nullable=False),
    sql.Column("failed", sql.Double, nullable=False),
)
"""Runs that ended in an error; a sweep skips them unless it gets `--retry`."""

PATHS = sql.Table(
    "graph_paths",
    METADATA,
    sql.Column("dataset", sql.Text, primary_key=True),
    sql.Column("dataset_hash", DIGEST, primary_key=True),
    sql.Column("path", sql.Text, nullable=False),
)
"""The folders of stored graphs that have runs; two may have the same name."""

LEASES = sql.Table(
    "run_leases",
    METADATA,
    sql.Column("key", DIGEST, primary_key=True),
    sql.Column("worker", sql.Text, nullable=False),
    sql.Column("expires", sql.Double, nullable=False),
)
"""Which worker trains which runs, and until when."""

# Connection


BUSY_SECONDS = 60
"""How long SQLite waits for another process that writes."""
READ_PRAGMAS = (f"busy_timeout = {1000 * BUSY_SECONDS}",)
WRITE_PRAGMAS = ("journal_mode = WAL", "synchronous = FULL")
LOCK = 0x756E616C
"""The number of the advisory lock of writers in PostgreSQL."""
WRITES = "writes"
RETRY_SECONDS = 600.0
"""How long to retry while the server is unreachable."""
RETRY_INTERVAL = 1.0
"""Pause between two attempts."""
ON_MESSAGE = "remark"
KEEPALIVE_OPTIONS = {
    "connect_timeout": "10",
    "tcp_user_timeout": "30000",
    "keepalives_idle": "10",
    "keepalives_interval": "10",
    "keepalives_count": "3",
}
"""Timeouts of a lost connection; by default TCP waits for hours."""
IDLE_TIMEOUT = "SET LOCAL idle_in_transaction_session_timeout = '30s'"
"""A host that loses its connection during a transaction must release its locks."""

INSERTS: dict[str, Callable[[sql.Table], Any]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}
"""Inserts that skip existing keys, by the kind of database."""


Params = ParamSpec("Params")
Return = TypeVar("Return")


@runtime_checkable
class HasEngine(Protocol):
    """An object with an SQLAlchemy engine, or an engine itself."""

    @property
    def engine(self) -> Engine: ...


Base = TypeVar("Base", bound=HasEngine)


def connect(
    url: str,
    on_message: Callable[[str], None] = lambda message: None,
    *,
    read_only: bool = False,
) -> Engine:
    """Open a database and create missing tables.

    With `read_only` nothing is written to a database that has all tables.
    """
    parsed = _parse_url(url)
    engine = sql.create_engine(
        _immutable_if_needed(parsed) if read_only else parsed,
        execution_options={ON_MESSAGE: on_message},
    )
    try:
        if engine.dialect.name == "sqlite":
            pragmas = READ_PRAGMAS if read_only else (*READ_PRAGMAS, *WRITE_PRAGMAS)
            sql.event.listen(engine, "connect", partial(_set_pragmas, pragmas))
        sql.event.listen(engine, "begin", _begin)
        if read_only:
            _add_tables_to_read(engine)
        else:
            _create_tables(engine)
    except (DatabaseError, UnicodeDecodeError) as error:
        reason = hide_password(str(getattr(error, "orig", error)))
        raise UserError(f"{hide_password(url)} cannot be opened: {reason}.") from None
    return engine


def _create_tables(engine: Engine) -> None:
    with write_transaction(engine) as connection:
        lock_writers(connection)
        METADATA.create_all(connection)


def _add_tables_to_read(engine: Engine) -> None:
    """Create missing tables; temporary ones if the database cannot be written."""
    present = set(sql.inspect(engine).get_table_names())
    missing = [table for table in METADATA.sorted_tables if table.name not in present]
    if not missing:
        return
    try:
        _create_tables(engine)
    except DatabaseError:
        sql.event.listen(engine, "begin", partial(_create_temporary, missing))


def _create_temporary(tables: Sequence[sql.Table], connection: Connection) -> None:
    for table in tables:
        statement = str(CreateTable(table).compile(dialect=connection.dialect))
        temporary = "CREATE TEMPORARY TABLE IF NOT EXISTS"
        connection.exec_driver_sql(statement.replace("CREATE TABLE", temporary, 1))


def hide_password(text: str) -> str:
    """The text with the passwords of URLs in it replaced by stars."""
    text = re.sub(r"(//[^:/\s]*:)\S*@", r"\1***@", text)
    return re.sub(r"(password=)[^&\s]*", r"\1***", text)


def database_exists(url: str) -> bool:
    """Whether the file of an SQLite database exists; True for a server."""
    path = _parse_url(url).database
    return not url.startswith("sqlite") or bool(path and Path(path).exists())


def _parse_url(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise UserError(
            f"'{hide_password(url)}' names no database; write sqlite:///results.db "
            "or postgresql://user@host/name."
        ) from None
    lookup(INSERTS, parsed.get_backend_name(), "kind of database")
    if parsed.get_backend_name() == "postgresql":
        require("psycopg", "postgres", "PostgreSQL needs psycopg")
        query = {**KEEPALIVE_OPTIONS, **parsed.query}
        return parsed.set(drivername="postgresql+psycopg", query=query)
    return parsed


def _immutable_if_needed(url: URL) -> URL:
    """The URL of an SQLite file in a folder where its index of the log cannot be.

    A file without a log has no writer, so that it can be opened as immutable.
    """
    path = Path(url.database or "").resolve()
    if url.get_backend_name() != "sqlite" or not url.database:
        return url
    if os.access(path.parent, os.W_OK) or Path(f"{path}-wal").exists():
        return url
    query = {**url.query, "immutable": "1", "uri": "true"}
    return url.set(database=f"file:{quote(str(path))}", query=query)


def retry_while_unreachable(
    function: Callable[Concatenate[Base, Params], Return],
) -> Callable[Concatenate[Base, Params], Return]:
    """Retry a function while the server is unreachable, with one message.

    The function must be idempotent: after a lost connection nobody knows whether its
    transaction was committed.
    """

    @wraps(function)
    def retry(owner: Base, /, *args: Params.args, **kwargs: Params.kwargs) -> Return:
        since: float | None = None
        while True:
            try:
                return function(owner, *args, **kwargs)
            except UnicodeDecodeError as error:  # a damaged SQLite file
                raise database_error(owner.engine, error) from None
            except DBAPIError as error:
                lost = error.connection_invalidated
                lost = lost or isinstance(error, OperationalError)
                if owner.engine.dialect.name != "postgresql" or not lost:
                    raise database_error(owner.engine, error) from None
                if since is None:
                    since = time.monotonic()
                    owner.engine.get_execution_options()[ON_MESSAGE](
                        f"The database is away ({first_line(error.orig)}); "
                        f"trying again for {RETRY_SECONDS / 60:g} minutes."
                    )
                if time.monotonic() > since + RETRY_SECONDS:
                    raise UserError(
                        f"The database is still away ({first_line(error.orig)}); "
                        "the same command goes on from what is stored."
                    ) from None
                time.sleep(RETRY_INTERVAL)

    return retry


def database_error(engine: Engine, error: Exception) -> UserError:
    """The error of a database that is damaged, locked or full, in one line."""
    reason = error.orig if isinstance(error, DBAPIError) else error
    text = f"{engine.url} cannot be used: {first_line(reason)}."
    return UserError(hide_password(text))


def write_transaction(engine: Engine) -> Any:
    """Begin a transaction that writes."""
    return engine.execution_options(**{WRITES: True}).begin()


def lock_writers(connection: Connection) -> None:
    """Lock out all other writers until the transaction ends, as SQLite does anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(sql.select(sql.func.pg_advisory_xact_lock(LOCK)))


def insert_new(
    connection: Connection, table: sql.Table, rows: Sequence[Mapping[str, Any]]
) -> int:
    """Insert the rows with new keys and return their number."""
    # The row count of some drivers is wrong if rows conflict; RETURNING is exact.
    insert = INSERTS[connection.dialect.name](table).on_conflict_do_nothing()
    insert = insert.returning(*table.primary_key)
    records = [{column.name: row[column.name] for column in table.c} for row in rows]
    return sum(len(connection.execute(insert, record).all()) for record in records)


def store_paths(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Store the folder of each graph in rows that have one; the latest counts."""
    names = [column.name for column in PATHS.c]
    paths = {tuple(row[name] for name in names) for row in rows if row.get("path")}
    for values in sorted(paths):
        insert = INSERTS[connection.dialect.name](PATHS)
        insert = insert.values(dict(zip(names, values, strict=True)))
        connection.execute(
            insert.on_conflict_do_update(
                index_elements=[*PATHS.primary_key], set_={"path": values[-1]}
            )
        )


def database_time(connection: Connection) -> float:
    """Seconds since 1970 by the clock of the database server."""
    if connection.dialect.name == "postgresql":
        now = sql.func.extract("epoch", sql.func.clock_timestamp())
        return float(connection.execute(sql.select(now)).scalar_one())
    return time.time()


def _set_pragmas(pragmas: Sequence[str], connection: Any, _: Any) -> None:
    """Let one process write while others read, and wait for locks."""
    # Python's own transactions begin late; here SQLAlchemy begins them.
    connection.isolation_level = None
    for pragma in pragmas:
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    """Take SQLite's write lock at once: a reader that turns writer later may fail."""
    writes = connection.get_execution_options().get(WRITES)
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
    elif writes:
        connection.exec_driver_sql(IDLE_TIMEOUT)
