"""Export results to a JSON lines file and import them again."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unalike.errors import UserError
from unalike.experiments.database import RUNS, ResultsDatabase, Row, rekey
from unalike.experiments.evaluation import PredictionSummary

FORMAT = "unalike results 1"
DERIVED_COLUMNS = frozenset({"key", "setting", "shape"})
"""What follows from the rest, and is found anew by whoever reads the file."""
CHUNK_SIZE = 500
"""Runs that are merged in one transaction."""


def export_runs(
    results: ResultsDatabase, path: Path, *, curves: bool = True, answers: bool = True
) -> int:
    """Write every run as a line of compressed JSON; how many there are."""
    partial = path.with_name(f".{path.name}.partial")
    count = 0
    # No time of writing inside: the same runs give the same file.
    with partial.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
        file.write(f"{json.dumps(FORMAT)}\n".encode())
        for row in results.runs(curves=curves, answers=answers):
            file.write(f"{json.dumps(_to_json(row))}\n".encode())
            count += 1
    partial.replace(path)
    return count


def import_runs(results: ResultsDatabase, path: Path) -> tuple[int, int]:
    """Merge the runs of a file; how many it has, and how many of them were new."""
    total = added = 0
    some: list[Row] = []
    for row in _lines(path):
        some.append(row)
        if len(some) == CHUNK_SIZE:
            total, added = total + len(some), added + results.store(some)
            some = []
    return total + len(some), added + results.store(some)


def _to_json(row: Row) -> dict[str, Any]:
    curve = row.get("curve")
    unknown = DERIVED_COLUMNS if row.get("answers") else DERIVED_COLUMNS | {"answers"}
    told = {name: value for name, value in row.items() if name not in unknown}
    return {**told, "curve": curve and b64encode(curve).decode()}


def _lines(path: Path) -> Iterator[Row]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            if json.loads(file.readline()) != FORMAT:
                raise UserError(f"{path} holds no results of this kind.")
            for line in file:
                yield _from_json(json.loads(line))
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} holds no results: {error}.") from None


def _from_json(told: dict[str, Any]) -> Row:
    curve = told["curve"]
    row = {**told, "curve": b64decode(curve) if curve else None}
    columns = {column.name for column in RUNS.c} - DERIVED_COLUMNS | {"curve"}
    answers = told.get("answers")
    if answers is not None:
        PredictionSummary.from_json(answers)
    return rekey({**{name: row[name] for name in columns}, "answers": answers})
