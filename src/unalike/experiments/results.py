"""Results: every run that was made, in one database that many may share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sql
from sqlalchemy.engine import Engine

from unalike.experiments.database import (
    connect,
    insert_new,
    is_there,
    patient,
    writing,
)
from unalike.experiments.schema import ANSWERS, CURVES, FAILURES, RUNS

Row = dict[str, Any]

AT_ONCE = 500
"""Keys that one question to the database may hold."""


@dataclass(frozen=True)
class Results:
    """An open database of results."""

    engine: Engine

    @classmethod
    def open(
        cls, url: str, remark: Callable[[str], None] = lambda what: None
    ) -> Results:
        """Open a database by its address; what befalls it later is remarked."""
        return cls(connect(url, remark))

    @classmethod
    def read(cls, url: str) -> Results:
        """Open a database to look into; an empty one where no file is there."""
        return cls(connect(url if is_there(url) else "sqlite://"))

    def close(self) -> None:
        """Let go of the database."""
        self.engine.dispose()

    def __enter__(self) -> Results:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @patient
    def store(self, rows: Sequence[Row]) -> int:
        """Keep runs, all or none; those that are there already stay as they are."""
        with writing(self.engine) as connection:
            added = insert_new(connection, RUNS, rows)
            insert_new(connection, CURVES, [row for row in rows if row["curve"]])
            told = [row for row in rows if row.get("answers")]
            insert_new(connection, ANSWERS, told)
            keys = [row["key"] for row in rows]
            connection.execute(sql.delete(FAILURES).where(FAILURES.c.key.in_(keys)))
        return added

    @patient
    def note_failures(self, rows: Sequence[Row], error: str) -> None:
        """Keep why runs did not come to an end."""
        told = [{**row, "error": error, "failed": time.time()} for row in rows]
        with writing(self.engine) as connection:
            insert_new(connection, FAILURES, told)

    @patient
    def forget_failures(self, keys: Iterable[str]) -> None:
        """Let runs be tried again."""
        with writing(self.engine) as connection:
            for some in _pieces(keys):
                connection.execute(sql.delete(FAILURES).where(FAILURES.c.key.in_(some)))

    def done(self, keys: Iterable[str]) -> set[str]:
        """Those of some runs that are finished."""
        return set(self._found(RUNS, keys))

    def failed(self, keys: Iterable[str]) -> dict[str, str]:
        """Those of some runs that failed, with their errors."""
        return {key: row["error"] for key, row in self._found(FAILURES, keys).items()}

    def settled(self, keys: Iterable[str]) -> set[str]:
        """Those of some runs that are finished or failed."""
        keys = list(keys)
        return self.done(keys) | set(self.failed(keys))

    @patient
    def _found(self, table: sql.Table, keys: Iterable[str]) -> dict[str, Row]:
        wanted = [table.c.key, *(c for c in table.c if c.name == "error")]
        found: dict[str, Row] = {}
        with self.engine.connect() as connection:
            for some in _pieces(keys):
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

    @patient
    def best_so_far(self) -> str:
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

    @patient
    def seconds(self, device: str) -> Mapping[str, float]:
        """How long a run of each shape took on a device, on average."""
        mean = sql.func.avg(RUNS.c.seconds)
        asked = sql.select(RUNS.c.shape, mean).where(RUNS.c.device == device)
        with self.engine.connect() as connection:
            rows = connection.execute(asked.group_by(RUNS.c.shape))
            return {shape: float(seconds) for shape, seconds in rows}


def _pieces(keys: Iterable[str]) -> Iterator[list[str]]:
    keys = list(keys)
    for begin in range(0, len(keys), AT_ONCE):
        yield keys[begin : begin + AT_ONCE]
