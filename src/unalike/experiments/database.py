"""Results database: finished runs, failures, training curves and their rows."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from types import NoneType
from typing import Any

import numpy as np
import sqlalchemy as sql
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DatabaseError

from unalike.device import commit
from unalike.errors import InputError
from unalike.experiments.config import Config, config_from_dict
from unalike.experiments.database_connection import (
    ANSWERS,
    CURVES,
    FAILURES,
    PATHS,
    RUNS,
    connect,
    database_error,
    database_exists,
    insert_new,
    retry_while_unreachable,
    store_paths,
    write_transaction,
)
from unalike.experiments.evaluation import PredictionSummary
from unalike.experiments.plan import DatasetRef, PlannedRun, RunGroup, run_key
from unalike.experiments.result import Result

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
        return set(self._by_keys(RUNS.c.setting, keys))

    def failed(self, keys: Iterable[str]) -> dict[str, str]:
        """The keys of failed runs among the given ones, with their errors."""
        return self._by_keys(FAILURES.c.error, keys)

    def finished_or_failed(self, keys: Iterable[str]) -> set[str]:
        """The keys of finished and failed runs among the given ones."""
        keys = list(keys)
        return self.done(keys) | set(self.failed(keys))

    def _by_keys(self, column: sql.Column[str], keys: Iterable[str]) -> dict[str, str]:
        """The values of a column in the rows with some keys."""
        key = column.table.c.key
        queries = (sql.select(key, column).where(key.in_(c)) for c in _chunks(keys))
        rows = (row for query in queries for row in self._rows(query))
        return {row["key"]: row[column.name] for row in rows}

    @retry_while_unreachable
    def _rows(self, query: sql.Select[Any]) -> list[Row]:
        with self.engine.connect() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

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
            raise database_error(self.engine, error) from None

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
        return self._rows(query)

    def graph_paths(self) -> dict[tuple[str, str], str]:
        """The folders of stored graphs by name and hash, where they are known."""
        rows = self._rows(sql.select(PATHS))
        return {(row["dataset"], row["dataset_hash"]): row["path"] for row in rows}

    def latest(self) -> Row | None:
        """The run that finished last."""
        rows = self._rows(sql.select(RUNS).order_by(RUNS.c.finished.desc()).limit(1))
        return rows[0] if rows else None

    def failures(self, **filters: str | int) -> list[Row]:
        """The failures with some column values."""
        return self._rows(sql.select(FAILURES).where(*_equal(FAILURES, filters)))

    def mean_seconds_by_stack(self, device: str) -> Mapping[str, float]:
        """The mean time of a run on a device, by stack key."""
        query = sql.select(RUNS.c.shape, sql.func.avg(RUNS.c.seconds).label("seconds"))
        query = query.where(RUNS.c.device == device).group_by(RUNS.c.shape)
        return {row["shape"]: float(row["seconds"]) for row in self._rows(query)}


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
