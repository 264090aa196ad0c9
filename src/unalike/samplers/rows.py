"""Row batches (exact for row-wise methods), the paper's ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.data.adjacency import Adjacency, Ids
from unalike.data.graph import Graph
from unalike.errors import require_positive
from unalike.samplers.base import Batch, LazyBatch, Sampler, train_mask

Style = Literal["shuffled", "paper"]
Tables = Literal["adamw", "lazy", "adagrad"]


@dataclass(frozen=True, kw_only=True)
class RowSampler(Sampler):
    """Some nodes with all their edges; exact for methods that look at rows alone."""

    runs_on_gpu: ClassVar[bool] = True

    size: int = 10_000
    """Train nodes in a batch of the shuffled style."""
    style: Style = "shuffled"
    """shuffled: every train node once an epoch; paper: an epoch is one step on one of
    some parts, which are ranges of nodes with equally many edges."""
    parts: int = 10
    """Parts of the paper's style."""
    tables: Tables = "adamw"
    """How the weights of edges move: adamw, exact; lazy, AdamW on the rows that a batch
    meets, an approximation; adagrad, one number per row in place of the moments."""

    def __post_init__(self) -> None:
        require_positive(self, "size", "parts")

    @property
    def depends_on_train(self) -> bool:
        return self.style == "shuffled"

    @property
    def sparse_optimizer(self) -> str:
        return self.tables

    def lazy_batches(
        self, graph: Graph, train: Ids, chance: torch.Generator
    ) -> Iterator[LazyBatch]:
        return STYLES[self.style](self, graph, train, chance)


def shuffled_rows(
    rows: RowSampler, graph: Graph, train: Ids, chance: torch.Generator
) -> Iterator[LazyBatch]:
    """Every train node once, in batches of one size but for the last."""
    order = torch.randperm(len(train), generator=chance)
    for part in order.split(rows.size) if len(order) else ():
        ids = train[part].to(graph.labels.device)
        yield partial(_cut, graph, ids, torch.ones(len(ids), device=ids.device))


def paper_range(
    rows: RowSampler, graph: Graph, train: Ids, chance: torch.Generator
) -> Iterator[LazyBatch]:
    """One range of nodes, all of them seen, the train nodes among them learned from."""
    bounds = paper_ranges(graph.adjacency, rows.parts)
    part = int(torch.randint(len(bounds) - 1, (1,), generator=chance))
    ids = torch.arange(bounds[part], bounds[part + 1], device=graph.labels.device)
    weight = train_mask(graph, train)[ids]
    if weight.any():
        yield partial(_cut, graph, ids, weight)


def _cut(graph: Graph, ids: Ids, weight: Float[Tensor, " nodes"]) -> Batch:
    return Batch(graph.select_rows(ids), weight)


def paper_ranges(adjacency: Adjacency, parts: int) -> list[int]:
    """Where ranges of nodes with about equally many entries begin and end.

    As the paper's program cuts them: where `parts` divides the number of entries the
    last two ranges are one.
    """
    loads, nodes = adjacency.global_degrees.cpu(), adjacency.num_rows
    starts, entries = loads.cumsum(0) - loads, int(loads.sum())
    even = max(1, entries // parts)
    cuts = torch.tensor(range(even, entries, even)[:-1], dtype=torch.int64)
    filled = loads.nonzero()[:, 0]
    places = torch.searchsorted(starts[filled], cuts)
    found = filled[places[places < len(filled)]].unique()
    return [0, *found.tolist(), nodes]


STYLES: dict[
    Style, Callable[[RowSampler, Graph, Ids, torch.Generator], Iterator[LazyBatch]]
] = {
    "shuffled": shuffled_rows,
    "paper": paper_range,
}
