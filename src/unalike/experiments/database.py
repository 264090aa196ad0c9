"""Results database (SQLite or PostgreSQL): schema, connection with retry, store and query runs."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, runtime_checkable

import numpy as np
import sqlalchemy as sql
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, DBAPIError, OperationalError

from unalike.device import commit
from unalike.errors import UserError, lookup
from unalike.experiments.config import Config, config_from_dict
from unalike.experiments.evaluation import PredictionSummary
from unalike.experiments.plan import DatasetRef, PlannedRun, RunGroup, run_key
from unalike.experiments.result import Result

# The schema: the tables of the database of results.


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
"""Every finished run, once: what it was, what came out, and where it was made."""

CURVES = sql.Table(
    "curves",
    METADATA,
    sql.Column("key", DIGEST, primary_key=True),
    sql.Column("curve", sql.LargeBinary, nullable=False),
)
"""How training went, apart from the rest so that a look at all runs is short."""

ANSWERS = sql.Table(
    "answers",
    METADATA,
    sql.Column("key", DIGEST, primary_key=True),
    sql.Column("answers", sql.JSON, nullable=False),
)
"""What was said of the test nodes; runs of older versions have none.

A table of its own: one that is missing is made when a database is opened.
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
"""Runs that ended in an error; a sweep leaves them alone until told to retry."""

LEASES = sql.Table(
    "run_leases",
    METADATA,
    sql.Column("key", DIGEST, primary_key=True),
    sql.Column("worker", sql.Text, nullable=False),
    sql.Column("expires", sql.Double, nullable=False),
)
"""Who works on which runs, and until when nobody else may."""

# The database: SQLite in a file, or PostgreSQL, opened for several processes.


BUSY_SECONDS = 60
"""How long a process waits for another to finish writing."""
LOCK = 0x756E616C
"""The number under which PostgreSQL knows that somebody writes alone."""
WRITES = "writes"
RETRY_SECONDS = 600.0
"""How long to wait for a server that went away."""
RETRY_INTERVAL = 1.0
"""Between two tries to reach it."""
ON_MESSAGE = "remark"
KEEPALIVE_OPTIONS = {
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


Params = ParamSpec("Params")
Return = TypeVar("Return")


@runtime_checkable
class HasEngine(Protocol):
    """What has a database, or is one."""

    @property
    def engine(self) -> Engine: ...


Base = TypeVar("Base", bound=HasEngine)


def connect(url: str, remark: Callable[[str], None] = lambda what: None) -> Engine:
    """Open a database and make its tables where they are missing."""
    engine = sql.create_engine(_parsed(url), execution_options={ON_MESSAGE: remark})
    try:
        if engine.dialect.name == "sqlite":
            sql.event.listen(engine, "connect", _set_pragmas)
            sql.event.listen(engine, "begin", _begin)
        else:
            sql.event.listen(engine, "begin", _limit_idle_transaction)
        with write_transaction(engine) as connection:
            lock_writers(connection)
            METADATA.create_all(connection)
    except DatabaseError as error:
        raise UserError(f"{url} cannot be opened: {error.orig}.") from None
    return engine


def database_exists(url: str) -> bool:
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
        query = {**KEEPALIVE_OPTIONS, **told.query}
        return told.set(drivername="postgresql+psycopg", query=query)
    return told


def retry_while_unreachable(
    work: Callable[Concatenate[Base, Params], Return],
) -> Callable[Concatenate[Base, Params], Return]:
    """Work that is tried again while the server is away, and says so once.

    What it does may be done twice: nobody knows whether a server that was lost while
    it stored something has stored it.
    """

    @wraps(work)
    def trying(opened: Base, /, *args: Params.args, **how: Params.kwargs) -> Return:
        gone: float | None = None
        while True:
            try:
                return work(opened, *args, **how)
            except DBAPIError as error:
                if not _is_away(opened.engine, error):
                    raise
                gone = gone or _tell_away(opened.engine, error)
                if time.monotonic() > gone + RETRY_SECONDS:
                    raise UserError(
                        f"The database is still away ({_first_line(error)}); the same "
                        "command goes on from what is stored."
                    ) from None
                time.sleep(RETRY_INTERVAL)

    return trying


def _is_away(engine: Engine, error: DBAPIError) -> bool:
    lost = error.connection_invalidated or isinstance(error, OperationalError)
    return engine.dialect.name == "postgresql" and lost


def _tell_away(engine: Engine, error: DBAPIError) -> float:
    """Say that the database is away; when that was."""
    engine.get_execution_options()[ON_MESSAGE](
        f"The database is away ({_first_line(error)}); "
        f"trying again for {RETRY_SECONDS / 60:g} minutes."
    )
    return time.monotonic()


def _first_line(error: DBAPIError) -> str:
    return str(error.orig).partition("\n")[0]


def write_transaction(engine: Engine) -> Any:
    """A transaction that writes, whole or not at all."""
    return engine.execution_options(**{WRITES: True}).begin()


def lock_writers(connection: Connection) -> None:
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


def database_time(connection: Connection) -> float:
    """Seconds since 1970 by the clock that all who share the database go by."""
    if connection.dialect.name == "postgresql":
        now = sql.func.extract("epoch", sql.func.clock_timestamp())
        return float(connection.execute(sql.select(now)).scalar_one())
    return time.time()


def _set_pragmas(connection: Any, _: Any) -> None:
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


def _limit_idle_transaction(connection: Connection) -> None:
    if connection.get_execution_options().get(WRITES):
        connection.exec_driver_sql(HURRY)


# Results: every run that was made, in one database that many may share.


Row = dict[str, Any]

CHUNK_SIZE = 500
"""Keys that one question to the database may hold."""


@dataclass(frozen=True)
class ResultsDatabase:
    """An open database of results."""

    engine: Engine

    @classmethod
    def open(
        cls, url: str, remark: Callable[[str], None] = lambda what: None
    ) -> ResultsDatabase:
        """Open a database by its address; what befalls it later is remarked."""
        return cls(connect(url, remark))

    @classmethod
    def read(cls, url: str) -> ResultsDatabase:
        """Open a database to look into; an empty one where no file is there."""
        return cls(connect(url if database_exists(url) else "sqlite://"))

    def close(self) -> None:
        """Let go of the database."""
        self.engine.dispose()

    def __enter__(self) -> ResultsDatabase:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @retry_while_unreachable
    def store(self, rows: Sequence[Row]) -> int:
        """Keep runs, all or none; those that are there already stay as they are."""
        with write_transaction(self.engine) as connection:
            added = insert_new(connection, RUNS, rows)
            insert_new(connection, CURVES, [row for row in rows if row["curve"]])
            told = [row for row in rows if row.get("answers")]
            insert_new(connection, ANSWERS, told)
            keys = [row["key"] for row in rows]
            connection.execute(sql.delete(FAILURES).where(FAILURES.c.key.in_(keys)))
        return added

    @retry_while_unreachable
    def store_failures(self, rows: Sequence[Row], error: str) -> None:
        """Keep why runs did not come to an end."""
        told = [{**row, "error": error, "failed": time.time()} for row in rows]
        with write_transaction(self.engine) as connection:
            insert_new(connection, FAILURES, told)

    @retry_while_unreachable
    def delete_failures(self, keys: Iterable[str]) -> None:
        """Let runs be tried again."""
        with write_transaction(self.engine) as connection:
            for some in _chunks(keys):
                connection.execute(sql.delete(FAILURES).where(FAILURES.c.key.in_(some)))

    def done(self, keys: Iterable[str]) -> set[str]:
        """Those of some runs that are finished."""
        return set(self._by_keys(RUNS, keys))

    def failed(self, keys: Iterable[str]) -> dict[str, str]:
        """Those of some runs that failed, with their errors."""
        return {key: row["error"] for key, row in self._by_keys(FAILURES, keys).items()}

    def finished_or_failed(self, keys: Iterable[str]) -> set[str]:
        """Those of some runs that are finished or failed."""
        keys = list(keys)
        return self.done(keys) | set(self.failed(keys))

    @retry_while_unreachable
    def _by_keys(self, table: sql.Table, keys: Iterable[str]) -> dict[str, Row]:
        wanted = [table.c.key, *(c for c in table.c if c.name == "error")]
        found: dict[str, Row] = {}
        with self.engine.connect() as connection:
            for some in _chunks(keys):
                asked = sql.select(*wanted).where(table.c.key.in_(some))
                rows = connection.execute(asked).mappings()
                found.update({row["key"]: dict(row) for row in rows})
        return found

    def runs(
        self, *, curves: bool = False, answers: bool = False, **facts: str
    ) -> Iterator[Row]:
        """The runs with some facts, by dataset, setting and split."""
        wanted = [CURVES.c.curve] * curves + [ANSWERS.c.answers] * answers
        asked = sql.select(RUNS, *wanted)
        for column in wanted:
            asked = asked.outerjoin(column.table, RUNS.c.key == column.table.c.key)
        order = ("dataset", "method", "setting", "split", "key")
        asked = asked.where(*(RUNS.c[name] == value for name, value in facts.items()))
        with self.engine.connect() as connection:
            ordered = asked.order_by(*(RUNS.c[name] for name in order))
            for row in connection.execute(ordered).mappings():
                yield dict(row)

    @retry_while_unreachable
    def best_message(self) -> str:
        """The best validation grade of the method that finished last, in words."""
        last = sql.select(RUNS.c.dataset, RUNS.c.method, RUNS.c.metric)
        grade = sql.func.avg(RUNS.c.valid).label("grade")
        with self.engine.connect() as connection:
            latest = last.order_by(RUNS.c.finished.desc()).limit(1)
            found = connection.execute(latest).one_or_none()
            if found is None:
                return ""
            asked = sql.select(grade).group_by(RUNS.c.setting)
            alike = zip(
                (RUNS.c.dataset, RUNS.c.method, RUNS.c.metric), found, strict=True
            )
            asked = asked.where(*(column == value for column, value in alike))
            best = (
                connection.execute(asked.order_by(sql.desc("grade"))).scalars().first()
            )
        return f"{found.dataset} {found.method} {best:.2f}"

    def failures(self, **facts: str) -> list[Row]:
        """The failures with some facts."""
        asked = sql.select(FAILURES)
        asked = asked.where(*(FAILURES.c[name] == told for name, told in facts.items()))
        with self.engine.connect() as connection:
            return [dict(row) for row in connection.execute(asked).mappings()]

    @retry_while_unreachable
    def seconds(self, device: str) -> Mapping[str, float]:
        """How long a run of each shape took on a device, on average."""
        mean = sql.func.avg(RUNS.c.seconds)
        asked = sql.select(RUNS.c.shape, mean).where(RUNS.c.device == device)
        with self.engine.connect() as connection:
            rows = connection.execute(asked.group_by(RUNS.c.shape))
            return {shape: float(seconds) for shape, seconds in rows}


def _chunks(keys: Iterable[str]) -> Iterator[list[str]]:
    keys = list(keys)
    for begin in range(0, len(keys), CHUNK_SIZE):
        yield keys[begin : begin + CHUNK_SIZE]


# Record: a result as the database keeps it.


CURVE_FIELDS = ("losses", "grades")


def to_row(result: Result, run: PlannedRun, bundle: RunGroup) -> dict[str, Any]:
    """A row of the table of runs."""
    told = result.to_json()
    curve = compress_curves([told.pop(name) for name in CURVE_FIELDS])
    return {
        **told,
        **run_columns(run, bundle),
        "shape": bundle.shape,
        "dataset_hash": bundle.subject.hash,
        "batching": run.setting.batching,
        "commit": commit(),
        "finished": time.time(),
        "curve": curve,
    }


def to_rows(
    subject: DatasetRef, setting: Config, results: Sequence[Result]
) -> list[dict[str, Any]]:
    """Rows for what a setting came to on some splits of a dataset."""
    named = (setting.to_dict, subject.name, subject.hash)
    runs = tuple(
        PlannedRun(setting, one.split, run_key(*named, one.split, one.seed))
        for one in results
    )
    bundle = RunGroup(subject, setting.stack_key, runs)
    pairs = zip(results, runs, strict=True)
    return [to_row(result, run, bundle) for result, run in pairs]


def run_columns(run: PlannedRun, bundle: RunGroup) -> dict[str, Any]:
    """What every table tells of a run."""
    return {
        "key": run.key,
        "setting": run.setting.hash,
        "dataset": bundle.subject.name,
        "method": run.setting.to_dict["method"],
        "split": run.split,
    }


def result_from_row(row: Mapping[str, Any]) -> Result:
    """The result that a row keeps."""
    curves = dict(zip(CURVE_FIELDS, decompress_curves(row.get("curve")), strict=True))
    answers = row.get("answers")
    told = {
        **row,
        **curves,
        "answers": answers and PredictionSummary.from_json(answers),
    }
    return Result(**{field.name: told[field.name] for field in fields(Result)})


def rekey(row: dict[str, Any]) -> dict[str, Any]:
    """A row made by another version, under the keys that it has in this one."""
    setting = config_from_dict(row)
    where = (row["dataset"], row["dataset_hash"], row["split"], row["seed"])
    keys = {
        "key": run_key(setting.to_dict, *where),
        "setting": setting.hash,
        "shape": setting.stack_key,
    }
    return {**row, **setting.to_dict, "batching": setting.batching, **keys}


def compress_curves(curves: list[list[float]]) -> bytes | None:
    """Curves of equal length as compressed 32-bit numbers."""
    if not curves[0]:
        return None
    return zlib.compress(np.array(curves, "<f4").T.tobytes(), 9)


def decompress_curves(packed: bytes | None) -> list[list[float]]:
    """The curves that were packed; empty ones where there are none."""
    if packed is None:
        return [[] for _ in CURVE_FIELDS]
    numbers = np.frombuffer(zlib.decompress(packed), "<f4").reshape(
        -1, len(CURVE_FIELDS)
    )
    return inline(numbers)


def inline(numbers: np.ndarray) -> list[list[float]]:
    """The columns of an array as lists."""
    return [column.tolist() for column in numbers.T]
