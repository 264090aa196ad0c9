"""Score nodes in batches and write them to Parquet or CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import torch

from unalike.data.adjacency import Ids
from unalike.data.graph import Graph
from unalike.datasets import GraphSource
from unalike.errors import UserError, did_you_mean
from unalike.files import atomic_write
from unalike.importing.readers import InputTables, TableInput
from unalike.inference.model import Model, Prediction
from unalike.inference.model_file import check_can_create
from unalike.inference.new_node_tables import BATCH_SIZE, NewNodeTables, TableColumns
from unalike.progress import NO_PROGRESS, Progress

MAX_SUGGESTIONS = 10_000
"""Ids that are compared with an unknown id for "did you mean"."""

WRITERS: dict[str, Callable[[Path, pa.Schema], Any]] = {
    ".parquet": pq.ParquetWriter,
    ".pq": pq.ParquetWriter,
    ".csv": pyarrow.csv.CSVWriter,
}


@dataclass(frozen=True, eq=False)
class ScoredBatch:
    """A batch of nodes with their inputs and predictions."""

    names: pa.Array
    prepared: Graph | None
    """Their rows; None where the model reads the full graph."""
    prediction: Prediction
    known: Ids | None = None
    """The training nodes whose stored scores these are; None if rows were scored."""


def score_new_nodes(
    new: NewNodeTables, ids: Sequence[str] = (), progress: Progress = NO_PROGRESS
) -> Iterator[ScoredBatch]:
    """Score new nodes in the order of their table: all of them, or some ids."""
    selected = torch.zeros(len(new.names), dtype=torch.bool)
    selected[positions_of(new.names, ids)] = True
    start = 0
    for names, prepared in new.batches(progress):
        mask = selected[start : start + len(names)]
        start += len(names)
        if not mask.all():
            rows = mask.nonzero()[:, 0]
            names = names.take(pa.array(rows.numpy()))
            prepared = prepared.select_rows(rows)
        if len(names):
            yield _score_rows(new.model, names, prepared)


def score_known_nodes(
    model: Model,
    source: GraphSource,
    ids: Sequence[str] = (),
    progress: Progress = NO_PROGRESS,
) -> Iterator[ScoredBatch]:
    """Score nodes of the training graph: all of them, or some ids."""
    graph = source.prepared(progress=progress)
    graph = graph if model.graph_info.directed else graph.to_undirected()
    model.graph_info.check(graph)
    names = model.known_names
    nodes = positions_of(names, ids)
    progress.stage("Scoring", len(nodes), "nodes")
    prepared = model.method.prepare(graph) if model.method.row_wise else None
    scores = None if model.scores_rows else model.scores(graph)
    for batch in nodes.split(BATCH_SIZE):
        batch_names = names.take(pa.array(batch.numpy()))
        rows = None if prepared is None else prepared.select_rows(batch)
        if scores is None:
            assert rows is not None
            yield _score_rows(model, batch_names, rows)
        else:
            prediction = model.to_prediction(scores[batch])
            yield ScoredBatch(batch_names, rows, prediction, batch)
        progress.advance(len(batch))


def predict_tables(
    model: Model,
    edges: TableInput = (),
    nodes: TableInput = (),
    columns: TableColumns | None = None,
    progress: Progress = NO_PROGRESS,
) -> pa.Table:
    """The id, the class and the probabilities of each new node of tables."""
    columns = columns or TableColumns()
    with TemporaryDirectory() as folder:
        tables = InputTables.open(edges, nodes, columns.header)
        new = NewNodeTables.read(model, tables, columns, Path(folder), progress)
        empty = model.to_prediction(torch.zeros(0, model.graph_info.num_classes))
        scored = [
            to_record_batch(batch.names, batch.prediction)
            for batch in score_new_nodes(new, progress=progress)
        ]
    return pa.Table.from_batches([to_record_batch(new.names[:0], empty), *scored])


def _score_rows(model: Model, names: pa.Array, prepared: Graph) -> ScoredBatch:
    prediction = model.to_prediction(model.score_rows(prepared))
    return ScoredBatch(names, prepared, prediction)


def positions_of(names: pa.Array, ids: Sequence[str]) -> Ids:
    """The positions of ids among names; all positions without ids."""
    if not ids:
        return torch.arange(len(names))
    texts = names.cast(pa.large_string())
    matches = pc.index_in(pa.array(ids, texts.type), value_set=texts)
    positions = matches.fill_null(-1).to_numpy(zero_copy_only=False)
    if (positions < 0).any():
        unknown = ids[int((positions < 0).argmax())]
        hint = did_you_mean(unknown, texts[:MAX_SUGGESTIONS].to_pylist())
        raise UserError(f"There is no node '{unknown}' among {len(names):,}.{hint}")
    return torch.from_numpy(positions.astype(np.int64))


def check_output_path(path: Path) -> None:
    """Raise if a file exists already, or if its suffix names no format."""
    if path.suffix.lower() not in WRITERS:
        raise UserError(
            f"{path} has no suffix of a known format; known are {', '.join(WRITERS)}."
        )
    check_can_create(path)


@contextmanager
def open_score_file(path: Path) -> Iterator[Callable[[pa.RecordBatch], None]]:
    """Write record batches to a file that is renamed to its name at the end."""
    check_output_path(path)
    writer: Any = None

    def add(rows: pa.RecordBatch) -> None:
        nonlocal writer
        if writer is None:
            writer = WRITERS[path.suffix.lower()](partial, rows.schema)
        writer.write_batch(rows)

    with atomic_write(path) as partial:
        yield add
        if writer is not None:
            writer.close()


def to_record_batch(names: pa.Array, prediction: Prediction) -> pa.RecordBatch:
    """Ids, most probable classes, and the probability of each class; or numbers."""
    if prediction.numbers is not None:
        numbers = pa.array(prediction.numbers.numpy())
        return pa.RecordBatch.from_pydict({"id": names, "value": numbers})
    probabilities = prediction.probabilities
    classes = pa.array(prediction.classes)
    columns = {
        "id": names,
        "class": classes.take(pa.array(probabilities.argmax(1).numpy())),
    }
    for index, name in enumerate(prediction.classes):
        columns[f"p_{name}"] = pa.array(probabilities[:, index].float().numpy())
    return pa.RecordBatch.from_pydict(columns)
