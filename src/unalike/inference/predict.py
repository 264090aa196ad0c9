"""Score nodes in batches and write them to Parquet or CSV."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
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
from unalike.files import UNWRITABLE
from unalike.inference.model import Model, Prediction
from unalike.inference.model_file import check_can_create
from unalike.inference.new_node_tables import ROWS_AT_ONCE, NewNodeTables
from unalike.progress import NO_PROGRESS, Progress

# Pieces: nodes that are scored some at a time, new ones or known ones.


SEARCHED = 10_000
"""Names among which one that is like a wrong one is looked for."""


@dataclass(frozen=True, eq=False)
class ScoredBatch:
    """Some nodes, what the model sees of them, and what it says."""

    names: pa.Array
    prepared: Graph | None
    """Their rows; None where the model looks at the whole graph."""
    prediction: Prediction


def score_new_nodes(
    new: NewNodeTables, wanted: Sequence[str] = (), progress: Progress = NO_PROGRESS
) -> Iterator[ScoredBatch]:
    """New nodes in the order of their table: all, or those whose ids are wanted."""
    chosen = torch.zeros(len(new.names), dtype=torch.bool)
    chosen[positions_of(new.names, wanted)] = True
    first = 0
    for names, prepared in new.batches(progress):
        here = chosen[first : first + len(names)]
        first += len(names)
        if not here.all():
            ids = here.nonzero()[:, 0]
            names, prepared = (
                names.take(pa.array(ids.numpy())),
                prepared.select_rows(ids),
            )
        if len(names):
            yield _scored(new.model, names, prepared)


def score_known_nodes(
    model: Model,
    source: GraphSource,
    wanted: Sequence[str] = (),
    progress: Progress = NO_PROGRESS,
) -> Iterator[ScoredBatch]:
    """Nodes of the graph that the model was trained on: all, or the wanted ones."""
    graph = source.prepared(progress=progress)
    graph = graph if model.graph_info.directed else graph.to_undirected()
    model.graph_info.check(graph)
    names = model.known_names
    places = positions_of(names, wanted)
    progress.stage("Scoring", len(places), "nodes")
    row_wise = model.network.row_wise
    prepared = model.method.prepare(graph) if row_wise else graph
    scores = None if row_wise else model.scores(graph)
    for part in places.split(ROWS_AT_ONCE):
        own = names.take(pa.array(part.numpy()))
        if scores is None:
            yield _scored(model, own, prepared.select_rows(part))
        else:
            yield ScoredBatch(own, None, model.to_prediction(scores[part]))
        progress.advance(len(part))


def positions_of(names: pa.Array, wanted: Sequence[str]) -> Ids:
    """The places of some ids among names; all places, if none is wanted."""
    if not wanted:
        return torch.arange(len(names))
    told = names.cast(pa.large_string())
    found = pc.index_in(pa.array(wanted, told.type), value_set=told)
    places = found.fill_null(-1).to_numpy(zero_copy_only=False)
    if (places < 0).any():
        stranger = wanted[int((places < 0).argmax())]
        near = did_you_mean(stranger, told[:SEARCHED].to_pylist())
        raise UserError(f"There is no node '{stranger}' among {len(names):,}.{near}")
    return torch.from_numpy(places.astype(np.int64))


def _scored(model: Model, names: pa.Array, prepared: Graph) -> ScoredBatch:
    found = model.to_prediction(model.score_rows(prepared))
    return ScoredBatch(names, prepared, found)


# Score files: ids, classes and probabilities, written some rows at a time.


WRITERS: dict[str, Callable[[Path, pa.Schema], Any]] = {
    ".parquet": pq.ParquetWriter,
    ".pq": pq.ParquetWriter,
    ".csv": pyarrow.csv.CSVWriter,
}
"""What writes a file, by its ending."""


def check_output_path(path: Path) -> None:
    """Refuse a file that is there already, or whose ending tells no format."""
    if path.suffix.lower() not in WRITERS:
        raise UserError(
            f"{path} has no ending that tells its format; known are "
            f"{', '.join(WRITERS)}."
        )
    check_can_create(path)


@contextmanager
def open_score_file(path: Path) -> Iterator[Callable[[pa.RecordBatch], None]]:
    """Write a file of scores; it takes its name only when it is whole."""
    check_output_path(path)
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


def to_record_batch(names: pa.Array, found: Prediction) -> pa.RecordBatch:
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
