"""Results database in SQLite or PostgreSQL: schema, connection, storing of runs."""

from __future__ import annotations

import os
import re
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial, wraps
from pathlib import Path
from types import NoneType
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, runtime_checkable
from urllib.parse import quote

import numpy as np
import sqlalchemy as sql
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, DBAPIError, OperationalError
from sqlalchemy.schema import CreateTable

from unalike.device import commit
from unalike.errors import InputError, UserError, lookup, require
from unalike.experiments.config import Config, config_from_dict
from unalike.experiments.evaluation import PredictionSummary
from unalike.experiments.plan import DatasetRef, PlannedRun, RunGroup, run_key
from unalike.experiments.result import Result

# Schema


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
        else:
            sql.event.listen(engine, "begin", _limit_idle_transaction)
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
                raise _as_user_error(owner.engine, error) from None
            except DBAPIError as error:
                if not _is_unreachable(owner.engine, error):
                    raise _as_user_error(owner.engine, error) from None
                since = since or _report_unreachable(owner.engine, error)
                if time.monotonic() > since + RETRY_SECONDS:
                    raise UserError(
                        f"The database is still away ({_first_line(error)}); the same "
                        "command goes on from what is stored."
                    ) from None
                time.sleep(RETRY_INTERVAL)

    return retry


def _as_user_error(engine: Engine, error: Exception) -> UserError:
    """The error of a database that is damaged, locked or full, in one line."""
    reason = error.orig if isinstance(error, DBAPIError) else error
    text = str(reason).partition("\n")[0][:200]
    return UserError(hide_password(f"{engine.url} cannot be used: {text}."))


def _is_unreachable(engine: Engine, error: DBAPIError) -> bool:
    lost = error.connection_invalidated or isinstance(error, OperationalError)
    return engine.dialect.name == "postgresql" and lost


def _report_unreachable(engine: Engine, error: DBAPIError) -> float:
    """Send a message that the database is unreachable, and return the time."""
    engine.get_execution_options()[ON_MESSAGE](
        f"The database is away ({_first_line(error)}); "
        f"trying again for {RETRY_SECONDS / 60:g} minutes."
    )
    return time.monotonic()


def _first_line(error: DBAPIError) -> str:
    return str(error.orig).partition("\n")[0]


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
    """Take the write lock at once: a reader that turns writer later may fail."""
    writes = connection.get_execution_options().get(WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _limit_idle_transaction(connection: Connection) -> None:
    if connection.get_execution_options().get(WRITES):
        connection.exec_driver_sql(IDLE_TIMEOUT)


# Stored runs


Row = dict[str, Any]

CHUNK_SIZE = 500
"""Keys in one query."""


@dataclass(frozen=True)
class ResultsDatabase:
    """An open database of runs, failures and leases."""

    engine: Engine

    @classmethod
    def open(
        cls, url: str, on_message: Callable[[str], None] = lambda message: None
    ) -> ResultsDatabase:
        """Open a database by its URL; `on_message` gets notes on lost connections."""
        return cls(connect(url, on_message))

    @classmethod
    def read(cls, url: str) -> ResultsDatabase:
        """Open a database for reading; an empty one if the file does not exist."""
        if not database_exists(url):
            return cls(connect("sqlite://"))
        return cls(connect(url, read_only=True))

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def __enter__(self) -> ResultsDatabase:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @retry_while_unreachable
    def store(self, rows: Sequence[Row]) -> int:
        """Insert runs in one transaction unless stored; return how many are new."""
        with write_transaction(self.engine) as connection:
            added = insert_new(connection, RUNS, rows)
            insert_new(connection, CURVES, [row for row in rows if row["curve"]])
            summaries = [row for row in rows if row.get("answers")]
            insert_new(connection, ANSWERS, summaries)
            store_paths(connection, rows)
            keys = [row["key"] for row in rows]
            connection.execute(sql.delete(FAILURES).where(FAILURES.c.key.in_(keys)))
        return added

    @retry_while_unreachable
    def store_failures(self, rows: Sequence[Row], error: str) -> None:
        """Insert the error of failed runs."""
        now = time.time()
        failures = [{**row, "error": error, "failed": now} for row in rows]
        with write_transaction(self.engine) as connection:
            insert_new(connection, FAILURES, failures)

    @retry_while_unreachable
    def delete_failures(self, keys: Iterable[str]) -> None:
        """Delete the failures of runs, so that sweeps run them again."""
        with write_transaction(self.engine) as connection:
            for chunk in _chunks(keys):
                delete = sql.delete(FAILURES).where(FAILURES.c.key.in_(chunk))
                connection.execute(delete)

    def done(self, keys: Iterable[str]) -> set[str]:
        """The keys of finished runs among the given ones."""
        return set(self._by_keys(RUNS, keys))

    def failed(self, keys: Iterable[str]) -> dict[str, str]:
        """The keys of failed runs among the given ones, with their errors."""
        return {key: row["error"] for key, row in self._by_keys(FAILURES, keys).items()}

    def finished_or_failed(self, keys: Iterable[str]) -> set[str]:
        """The keys of finished and failed runs among the given ones."""
        keys = list(keys)
        return self.done(keys) | set(self.failed(keys))

    @retry_while_unreachable
    def _by_keys(self, table: sql.Table, keys: Iterable[str]) -> dict[str, Row]:
        columns = [table.c.key, *(c for c in table.c if c.name == "error")]
        by_key: dict[str, Row] = {}
        with self.engine.connect() as connection:
            for chunk in _chunks(keys):
                query = sql.select(*columns).where(table.c.key.in_(chunk))
                rows = connection.execute(query).mappings()
                by_key.update({row["key"]: dict(row) for row in rows})
        return by_key

    def runs(
        self, *, curves: bool = False, answers: bool = False, **filters: str | int
    ) -> Iterator[Row]:
        """The runs with some column values, by dataset, method, config and split."""
        joined = [CURVES.c.curve] * curves + [ANSWERS.c.answers] * answers
        query = sql.select(RUNS, *joined).where(*_equal(RUNS, filters))
        for column in joined:
            query = query.outerjoin(column.table, RUNS.c.key == column.table.c.key)
        order = ("dataset", "method", "setting", "split", "key")
        query = query.order_by(*(RUNS.c[name] for name in order))
        try:
            with self.engine.connect() as connection:
                for row in connection.execute(query).mappings():
                    yield check_types(dict(row))
        except (DatabaseError, ValueError, TypeError) as error:
            raise _as_user_error(self.engine, error) from None

    @retry_while_unreachable
    def dataset_versions(self, dataset: str) -> list[Row]:
        """The versions of a dataset with their number of runs and splits.

        The version with the most runs is first, the newest among equals.
        """
        runs, newest = sql.func.count(), sql.func.max(RUNS.c.finished)
        splits = sql.func.count(RUNS.c.split.distinct())
        query = (
            sql.select(RUNS.c.dataset_hash, runs.label("runs"), splits.label("splits"))
            .where(RUNS.c.dataset == dataset)
            .group_by(RUNS.c.dataset_hash)
            .order_by(runs.desc(), newest.desc(), RUNS.c.dataset_hash)
        )
        with self.engine.connect() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    @retry_while_unreachable
    def graph_paths(self) -> dict[tuple[str, str], str]:
        """The folders of stored graphs by name and hash, where they are known."""
        with self.engine.connect() as connection:
            rows = connection.execute(sql.select(PATHS))
            return {(name, hash): path for name, hash, path in rows}

    @retry_while_unreachable
    def latest(self) -> Row | None:
        """The run that finished last."""
        query = sql.select(RUNS).order_by(RUNS.c.finished.desc()).limit(1)
        with self.engine.connect() as connection:
            row = connection.execute(query).mappings().one_or_none()
        return None if row is None else dict(row)

    def failures(self, **filters: str | int) -> list[Row]:
        """The failures with some column values."""
        query = sql.select(FAILURES).where(*_equal(FAILURES, filters))
        with self.engine.connect() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    @retry_while_unreachable
    def mean_seconds_by_stack(self, device: str) -> Mapping[str, float]:
        """The mean time of a run on a device, by stack key."""
        query = sql.select(RUNS.c.shape, sql.func.avg(RUNS.c.seconds))
        query = query.where(RUNS.c.device == device).group_by(RUNS.c.shape)
        with self.engine.connect() as connection:
            rows = connection.execute(query)
            return {stack_key: float(seconds) for stack_key, seconds in rows}


def _equal(table: sql.Table, filters: Mapping[str, str | int]) -> list[Any]:
    return [table.c[name] == value for name, value in filters.items()]


def _chunks(keys: Iterable[str]) -> Iterator[list[str]]:
    keys = list(keys)
    for start in range(0, len(keys), CHUNK_SIZE):
        yield keys[start : start + CHUNK_SIZE]


# Results as database rows


CURVE_FIELDS = ("losses", "grades")


def to_row(result: Result, run: PlannedRun, group: RunGroup) -> Row:
    """The database row of a result."""
    columns = result.to_json()
    curve = compress_curves([columns.pop(name) for name in CURVE_FIELDS])
    return {
        **columns,
        **run_columns(run, group),
        "shape": group.stack_key,
        "dataset_hash": group.dataset.hash,
        "path": group.dataset.path,
        "batching": run.config.batching,
        "commit": commit(),
        "finished": time.time(),
        "curve": curve,
    }


def to_rows(
    dataset: DatasetRef, config: Config, results: Sequence[Result]
) -> list[Row]:
    """The database rows of a configuration on some splits of a dataset."""
    names = (config.to_dict, dataset.name, dataset.hash)
    runs = tuple(
        PlannedRun(config, result.split, run_key(*names, result.split, result.seed))
        for result in results
    )
    group = RunGroup(dataset, config.stack_key, runs)
    pairs = zip(results, runs, strict=True)
    return [to_row(result, run, group) for result, run in pairs]


def run_columns(run: PlannedRun, group: RunGroup) -> Row:
    """The columns that runs and failures have in common."""
    return {
        "key": run.key,
        "setting": run.config.hash,
        "dataset": group.dataset.name,
        "method": run.config.to_dict["method"],
        "split": run.split,
    }


def result_from_row(row: Mapping[str, Any]) -> Result:
    """The result in a database row."""
    curves = dict(zip(CURVE_FIELDS, decompress_curves(row.get("curve")), strict=True))
    answers = row.get("answers")
    summary = answers and PredictionSummary.from_json(answers)
    columns = {**row, **curves, "answers": summary}
    return Result(**{field.name: columns[field.name] for field in fields(Result)})


def rekey(row: Row) -> Row:
    """A row of another version with the keys and options of this version."""
    config = config_from_dict(row)
    data = (row["dataset"], row["dataset_hash"], row["split"], row["seed"])
    keys = {
        "key": run_key(config.to_dict, *data),
        "setting": config.hash,
        "shape": config.stack_key,
    }
    return {**row, **config.to_dict, "batching": config.batching, **keys}


def _types(column: sql.Column[Any]) -> tuple[type, ...]:
    kind = dict if isinstance(column.type, sql.JSON) else column.type.python_type
    types = (float, int) if kind is float else (kind,)
    return (*types, NoneType) if column.nullable else types


COLUMN_TYPES = {column.name: _types(column) for column in RUNS.c}
"""Types of the values of each column."""
MAX_NUMBER = 2**63 - 1
"""Largest integer of a database."""


def check_types(row: Row) -> Row:
    """The same row; a `ValueError` if a value has another type than its column."""
    for name, types in COLUMN_TYPES.items():
        value = row[name]
        if not isinstance(value, types) or isinstance(value, bool):
            kind = type(value).__name__
            raise ValueError(f"a run has the {name} {str(value)[:40]!r} ({kind})")
    return row


def check_numbers(row: Row) -> None:
    """Raise a `ValueError` if a number is not finite or does not fit into 64 bits."""
    for name in COLUMN_TYPES:
        value = row[name]
        is_number = isinstance(value, int | float)
        if is_number and not -MAX_NUMBER <= value <= MAX_NUMBER:
            raise ValueError(f"a run has the {name} {value}")


MAX_CURVE_BYTES = 1 << 26
"""Size of the curves of a run: four million epochs."""


def compress_curves(curves: list[list[float]]) -> bytes | None:
    """Compress curves of equal length as float32."""
    if not curves[0]:
        return None
    return zlib.compress(np.array(curves, "<f4").T.tobytes(), 9)


def decompress_curves(data: bytes | None) -> list[list[float]]:
    """The curves in compressed data; empty ones for None.

    An `InputError` if they are damaged or far too long.
    """
    if data is None:
        return [[] for _ in CURVE_FIELDS]
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(data, MAX_CURVE_BYTES)
    except zlib.error as error:
        raise InputError(f"a damaged curve: {error}") from None
    if not stream.eof:
        raise InputError("a curve that is cut off or too long")
    if len(content) % (4 * len(CURVE_FIELDS)):
        raise InputError("a curve of a wrong length")
    values = np.frombuffer(content, "<f4")
    columns = values.reshape(-1, len(CURVE_FIELDS)).T
    return [column.tolist() for column in columns]
