"""Score files: ids, classes and probabilities, written some rows at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from unalike.draft import UNWRITABLE
from unalike.errors import UserError
from unalike.models.file import check_new
from unalike.models.prediction import Prediction

WRITERS: dict[str, Callable[[Path, pa.Schema], Any]] = {
    ".parquet": pq.ParquetWriter,
    ".pq": pq.ParquetWriter,
    ".csv": pyarrow.csv.CSVWriter,
}
"""What writes a file, by its ending."""


def check_scores(path: Path) -> None:
    """Refuse a file that is there already, or whose ending tells no format."""
    if path.suffix.lower() not in WRITERS:
        raise UserError(
            f"{path} has no ending that tells its format; known are "
            f"{', '.join(WRITERS)}."
        )
    check_new(path)


@contextmanager
def score_file(path: Path) -> Iterator[Callable[[pa.RecordBatch], None]]:
    """Write a file of scores; it takes its name only when it is whole."""
    check_scores(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    writer: Any = None

    def add(rows: pa.RecordBatch) -> None:
        nonlocal writer
        if writer is None:
            writer = WRITERS[path.suffix.lower()](partial, rows.schema)
        writer.write_batch(rows)

    try:
        yield add
        if writer is not None:
            writer.close()
            partial.rename(path)
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        raise UserError(f"Cannot write {path}: {error.strerror}.") from None
    finally:
        partial.unlink(missing_ok=True)


def score_rows(names: pa.Array, found: Prediction) -> pa.RecordBatch:
    """The user's ids, the most probable classes, and the probability of each class."""
    classes = pa.array(found.classes)
    columns = {
        "id": names,
        "class": classes.take(pa.array(found.probabilities.argmax(1).numpy())),
    }
    for place, name in enumerate(found.classes):
        share = found.probabilities[:, place].float().numpy()
        columns[f"p_{name}"] = pa.array(share)
    return pa.RecordBatch.from_pydict(columns)
