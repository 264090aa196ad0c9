"""Views as an Arrow table: node, split, fold, label and one column per view column."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from unalike.data.split import PARTS, Split
from unalike.data.task import Task, labels_of
from unalike.errors import UserError
from unalike.files import atomic_write
from unalike.methods.views import Views
from unalike.progress import NO_PROGRESS, Progress
from unalike.views.blocks import CHUNK
from unalike.views.table import ViewTable

if TYPE_CHECKING:
    import pyarrow


def view_table(
    task: Task,
    method: Views | None = None,
    *,
    device: torch.device | str = "cpu",
    progress: Progress = NO_PROGRESS,
) -> pyarrow.Table:
    """The views of a task as an Arrow table; `.to_pandas()` makes a DataFrame.

    Every row is read in the context of its own fold, in which no label of the fold is
    known, so rows of train and other nodes are alike. Labels outside train and valid
    are null.
    """
    import pyarrow

    split = Split(task.train, task.valid, torch.arange(0))
    labels = labels_of(task.graph, task.train, task.valid)
    [problem] = (method or Views()).problems([task], device, progress)
    return pyarrow.Table.from_batches(batches(problem.table, split, labels))


def batches(
    table: ViewTable, split: Split, labels: Int[Tensor, " nodes"]
) -> Iterator[pyarrow.RecordBatch]:
    """The rows of all nodes, some thousand at a time."""
    import pyarrow

    names = table.column_names()
    parts = split.to_codes(len(labels))
    part_names = np.array([*PARTS, None], dtype=object)
    for ids in torch.arange(len(labels)).split(CHUNK):
        rows = table.rows(ids).numpy()
        own = labels[ids].numpy()
        columns = {
            "node": pyarrow.array(ids.numpy()),
            "part": pyarrow.array(part_names[parts[ids].numpy()], pyarrow.string()),
            "fold": pyarrow.array(table.folds.fine[ids].numpy()),
            "label": pyarrow.array(own, mask=own < 0),
        }
        values = {
            name: pyarrow.array(np.ascontiguousarray(rows[:, column]))
            for column, name in enumerate(names)
        }
        yield pyarrow.RecordBatch.from_pydict(columns | values)


def write_views(
    path: Path, table: ViewTable, split: Split, labels: Int[Tensor, " nodes"]
) -> None:
    """Write the table as Parquet or CSV, by the suffix of the file."""
    import pyarrow.csv
    import pyarrow.parquet

    writers = {
        ".parquet": pyarrow.parquet.ParquetWriter,
        ".csv": pyarrow.csv.CSVWriter,
    }
    if path.suffix not in writers:
        raise UserError(f"--out is {path}; write a name that ends in .parquet or .csv.")
    rows = batches(table, split, labels)
    first = next(rows)
    writer = writers[path.suffix]
    with atomic_write(path) as partial, writer(partial, first.schema) as file:
        for batch in (first, *rows):
            file.write_batch(batch)
