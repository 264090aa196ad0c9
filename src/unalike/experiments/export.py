"""Export results to a JSON lines file and import them again."""

from __future__ import annotations

import gzip
import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

from unalike.errors import UserError, first_line
from unalike.experiments.database import (
    ResultsDatabase,
    Row,
    check_numbers,
    check_types,
    decompress_curves,
    rekey,
)
from unalike.experiments.database_connection import RUNS
from unalike.experiments.evaluation import PredictionSummary
from unalike.files import atomic_write

FORMAT = "unalike results 1"
DERIVED_COLUMNS = frozenset({"key", "setting", "shape"})
"""Columns that are computed from the others when a file is imported."""
CHUNK_SIZE = 500
"""Runs of one transaction."""
MAX_LINE_BYTES = 1 << 27
"""Size of a run; a few kilobytes are usual."""
MAX_NAMED_LINES = 5
"""Invalid lines that an error names."""
ROW_ERRORS = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""Errors of a line that is no run."""


def export_runs(
    results: ResultsDatabase, path: Path, *, curves: bool = True, answers: bool = True
) -> int:
    """Write all runs as compressed JSON lines and return their number."""
    runs = 0
    # No modification time in the header: equal runs give equal files.
    with (
        atomic_write(path) as partial,
        partial.open("wb") as raw,
        gzip.GzipFile("", "wb", 9, raw, mtime=0) as file,
    ):
        file.write(f"{json.dumps(FORMAT)}\n".encode())
        for row in results.runs(curves=curves, answers=answers):
            file.write(f"{json.dumps(_to_json(row))}\n".encode())
            runs += 1
    return runs


def import_runs(results: ResultsDatabase, path: Path) -> tuple[int, int]:
    """Merge the runs of a file; return their number and how many are new.

    Lines that are no runs are left out and named in a `UserError` at the end.
    """
    total = added = 0
    invalid: list[str] = []
    reader = _read_rows(path, invalid)
    while rows := list(islice(reader, CHUNK_SIZE)):
        total, added = total + len(rows), added + results.store(rows)
    if invalid:
        raise UserError(
            f"{path} has {len(invalid)} lines that are no runs: "
            f"{'; '.join(invalid[:MAX_NAMED_LINES])}. "
            f"The other {total} runs are stored, {added} of them are new."
        )
    return total, added


def _to_json(row: Row) -> dict[str, Any]:
    curve = row.get("curve")
    omitted = DERIVED_COLUMNS if row.get("answers") else DERIVED_COLUMNS | {"answers"}
    columns = {name: value for name, value in row.items() if name not in omitted}
    return {**columns, "curve": curve and b64encode(curve).decode()}


def _read_rows(path: Path, invalid: list[str]) -> Iterator[Row]:
    """Yield the rows of a file; the reasons of lines without one go to a list."""
    try:
        with gzip.open(path, "rb") as file:
            if _line(file) != f"{json.dumps(FORMAT)}\n".encode():
                raise UserError(f"{path} holds no results of this kind.")
            for number in count(2):
                if not (line := _line(file)):
                    return
                try:
                    row = _from_json(json.loads(line))
                except (*ROW_ERRORS, UserError) as error:
                    invalid.append(f"line {number} ({first_line(error)})")
                else:
                    yield row
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise UserError(f"{path} holds no results, or is cut off: {error}.") from None


def _line(file: gzip.GzipFile) -> bytes:
    """The next line; a `ValueError` if it is too long to be a run."""
    line = file.readline(MAX_LINE_BYTES)
    if len(line) == MAX_LINE_BYTES:
        raise ValueError(f"a line is longer than {MAX_LINE_BYTES:,} bytes")
    return line


def _from_json(line: dict[str, Any]) -> Row:
    curve = line["curve"]
    row = {**line, "curve": b64decode(curve) if curve else None}
    decompress_curves(row["curve"])
    columns = {column.name for column in RUNS.c} - DERIVED_COLUMNS | {"curve"}
    answers = line.get("answers")
    if answers is not None:
        PredictionSummary.from_json(answers)
    row = rekey({**{name: row[name] for name in columns}, "answers": answers})
    check_numbers(check_types(row))
    return row
