"""Scoring: what a stack of runs says of nodes, a piece of the graph at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.adjacency import Ids
from unalike.graph import Graph
from unalike.kernels.update import Held
from unalike.training.state import State

Kind = TypeVar("Kind", bound=Held)

NUMBERS_AT_ONCE = {"cpu": 2**26, "cuda": 2**28}
"""Numbers that scoring may hold of one table at a time.

Processes that train together must cut alike, so what is free cannot decide.
"""
ENTRIES_AT_ONCE = 2**25
"""Entries of an adjacency that scoring may cut out at a time."""


@torch.no_grad()
def score(
    state: State,
    batches: Iterable[Graph],
    scores: Float[Tensor, "runs nodes classes"],
    *,
    best: bool,
) -> Float[Tensor, "runs nodes classes"]:
    """Fill in the scores of batches, by the present weights or the best."""
    stack = state.stack
    rest = stack.rest.best if best else stack.rest.now
    buffers = state.best_buffers if best else stack.buffers
    for batch in batches:
        there = batch.to(rest.device)
        first = stack.products(there, best=best)
        found = stack.scores(there, first, rest[0], buffers, training=False)
        scores[:, batch.ids.to(scores.device)] = found.to(scores.device)
    return scores


def on_host(state: State) -> State:
    """A copy in main memory, to score what a card has no room for."""
    stack = state.stack
    host = replace(
        stack,
        tables={name: _on_host(table) for name, table in stack.tables.items()},
        rest=_on_host(stack.rest),
        buffers={name: buffer.cpu() for name, buffer in stack.buffers.items()},
        fixed={name: buffer.cpu() for name, buffer in stack.fixed.items()},
        half=False,
    )
    kept = {name: buffer.cpu() for name, buffer in state.best_buffers.items()}
    return replace(state, stack=host, best_buffers=kept)


def _on_host(weights: Kind) -> Kind:
    parts = {name: t.cpu() for name, t in vars(weights).items() if t is not None}
    return replace(weights, **{**parts, "half": None})


def rows_of(state: State, graph: Graph, ids: Ids) -> Iterator[Graph]:
    """Some rows, a bounded number of them and of their entries at a time."""
    width = sum(table.now[0].numel() for table in state.stack.tables.values())
    return some_rows(graph, ids, width, state.stack.rest.now.device)


def some_rows(
    graph: Graph, ids: Ids, width: int, device: torch.device
) -> Iterator[Graph]:
    """The same for tables of a known width, scored on a device."""
    degrees = graph.adjacency.loads[ids.to(graph.labels.device)].cpu()
    most = NUMBERS_AT_ONCE[device.type]
    numbers = (width + 128) * torch.arange(1, len(ids) + 1) / most
    filled = torch.maximum(numbers, degrees.cumsum(0) / ENTRIES_AT_ONCE)
    sizes = filled.long().bincount()
    for part in ids.split(sizes[sizes > 0].tolist()):
        yield graph.rows(part.to(graph.labels.device))
