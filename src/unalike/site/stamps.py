"""Stamps: what tells whether the runs of a method on a dataset have changed."""

from __future__ import annotations

import sqlalchemy as sql

from unalike.experiments.results import Results
from unalike.experiments.schema import FAILURES, RUNS

Pair = tuple[str, str]
"""A dataset and a method."""


def stamps(results: Results) -> dict[Pair, str]:
    """How many runs and failures each pair has, and when the last was stored."""
    found: dict[Pair, str] = {}
    for table, moment in ((RUNS, RUNS.c.finished), (FAILURES, FAILURES.c.failed)):
        pair = (table.c.dataset, table.c.method)
        asked = sql.select(*pair, sql.func.count(), sql.func.max(moment))
        with results.engine.connect() as connection:
            grouped = connection.execute(asked.group_by(*pair).order_by(*pair))
            for dataset, method, count, last in grouped:
                before = found.get((dataset, method), "")
                told = f"{before} {table.name} {count} {last}"
                found[dataset, method] = told.lstrip()
    return found
