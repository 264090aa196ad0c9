"""Export results to a JSON lines file and import them again."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from unalike.errors import UserError
from unalike.experiments.database import RUNS, ResultsDatabase, Row, rekey
from unalike.experiments.evaluation import PredictionSummary
from unalike.files import atomic_write

FORMAT = "unalike results 1"
DERIVED_COLUMNS = frozenset({"key", "setting", "shape"})
"""Columns that are computed from the others when a file is imported."""
CHUNK_SIZE = 500
"""Runs of one transaction."""


def export_runs(
    results: ResultsDatabase, path: Path, *, curves: bool = True, answers: bool = True
) -> int:
    """Write all runs as compressed JSON lines and return their number."""
    count = 0
    # No modification time in the header: equal runs give equal files.
    with (
        atomic_write(path) as partial,
        partial.open("wb") as raw,
        gzip.GzipFile("", "wb", 9, raw, mtime=0) as file,
    ):
        file.write(f"{json.dumps(FORMAT)}\n".encode())
        for row in results.runs(curves=curves, answers=answers):
            file.write(f"{json.dumps(_to_json(row))}\n".encode())
            count += 1
    return count


def import_runs(results: ResultsDatabase, path: Path) -> tuple[int, int]:
    """Merge the runs of a file; return their number and how many are new."""
    total = added = 0
    reader = _read_rows(path)
    while rows := list(islice(reader, CHUNK_SIZE)):
        total, added = total + len(rows), added + results.store(rows)
    return total, added


def _to_json(row: Row) -> dict[str, Any]:
    curve = row.get("curve")
    omitted = DERIVED_COLUMNS if row.get("answers") else DERIVED_COLUMNS | {"answers"}
    columns = {name: value for name, value in row.items() if name not in omitted}
    return {**columns, "curve": curve and b64encode(curve).decode()}


def _read_rows(path: Path) -> Iterator[Row]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            if json.loads(file.readline()) != FORMAT:
                raise UserError(f"{path} holds no results of this kind.")
            for line in file:
                yield _from_json(json.loads(line))
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} holds no results: {error}.") from None


def _from_json(line: dict[str, Any]) -> Row:
    curve = line["curve"]
    row = {**line, "curve": b64decode(curve) if curve else None}
    columns = {column.name for column in RUNS.c} - DERIVED_COLUMNS | {"curve"}
    answers = line.get("answers")
    if answers is not None:
        PredictionSummary.from_json(answers)
    return rekey({**{name: row[name] for name in columns}, "answers": answers})
