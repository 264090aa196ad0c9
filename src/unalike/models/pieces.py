"""Pieces: nodes that are scored some at a time, new ones or known ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from unalike.adjacency import Ids
from unalike.datasets import Source
from unalike.errors import UserError, did_you_mean
from unalike.graph import Graph
from unalike.models.model import Model
from unalike.models.new_tables import ROWS_AT_ONCE, NewTables
from unalike.models.prediction import Prediction
from unalike.progress import SILENT, Progress

SEARCHED = 10_000
"""Names among which one that is like a wrong one is looked for."""


@dataclass(frozen=True, eq=False)
class Piece:
    """Some nodes, what the model sees of them, and what it says."""

    names: pa.Array
    prepared: Graph | None
    """Their rows; None where the model looks at the whole graph."""
    found: Prediction


def new_pieces(
    new: NewTables, wanted: Sequence[str] = (), progress: Progress = SILENT
) -> Iterator[Piece]:
    """New nodes in the order of their table: all, or those whose ids are wanted."""
    chosen = torch.zeros(len(new.names), dtype=torch.bool)
    chosen[places_of(new.names, wanted)] = True
    first = 0
    for names, prepared in new.batches(progress):
        here = chosen[first : first + len(names)]
        first += len(names)
        if not here.all():
            ids = here.nonzero()[:, 0]
            names, prepared = names.take(pa.array(ids.numpy())), prepared.rows(ids)
        if len(names):
            yield _scored(new.model, names, prepared)


def known_pieces(
    model: Model,
    source: Source,
    wanted: Sequence[str] = (),
    progress: Progress = SILENT,
) -> Iterator[Piece]:
    """Nodes of the graph that the model was trained on: all, or the wanted ones."""
    graph = source.prepared(progress=progress)
    graph = graph if model.facts.directed else graph.symmetric()
    model.facts.check(graph)
    names = model.known_names
    places = places_of(names, wanted)
    progress.stage("Scoring", len(places), "nodes")
    row_wise = model.method.row_wise
    prepared = model.method.prepare(graph) if row_wise else graph
    scores = None if row_wise else model.scores(graph)
    for part in places.split(ROWS_AT_ONCE):
        own = names.take(pa.array(part.numpy()))
        if scores is None:
            yield _scored(model, own, prepared.rows(part))
        else:
            yield Piece(own, None, model.prediction(scores[part]))
        progress.advance(len(part))


def places_of(names: pa.Array, wanted: Sequence[str]) -> Ids:
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


def _scored(model: Model, names: pa.Array, prepared: Graph) -> Piece:
    found = model.prediction(model.score_rows(prepared))
    return Piece(names, prepared, found)
