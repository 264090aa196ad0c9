"""Change tokens, which say whether the runs of a method on a dataset have changed."""

from __future__ import annotations

import sqlalchemy as sql

from unalike.experiments.results import Results
from unalike.experiments.schema import FAILURES, RUNS

DatasetMethod = tuple[str, str]
"""The names of a dataset and a method."""


def change_tokens(results: Results) -> dict[DatasetMethod, str]:
    """The number of runs and failures of each pair, and when the last was stored."""
    tokens: dict[DatasetMethod, str] = {}
    for table, moment in ((RUNS, RUNS.c.finished), (FAILURES, FAILURES.c.failed)):
        pair = (table.c.dataset, table.c.method)
        query = sql.select(*pair, sql.func.count(), sql.func.max(moment))
        with results.engine.connect() as connection:
            groups = connection.execute(query.group_by(*pair).order_by(*pair))
            for dataset, method, count, last in groups:
                before = tokens.get((dataset, method), "")
                token = f"{before} {table.name} {count} {last}"
                tokens[dataset, method] = token.lstrip()
    return tokens
