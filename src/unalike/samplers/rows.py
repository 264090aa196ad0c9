"""Row sampler: batches of nodes with all their edges, for row-wise methods."""

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
    """Some nodes with all their edges; exact for row-wise methods."""

    runs_on_gpu: ClassVar[bool] = True

    size: int = 10_000
    """Train nodes in a batch of the shuffled style."""
    style: Style = "shuffled"
    """shuffled: every train node once an epoch; paper: an epoch is one step on one of
    `parts` ranges of nodes with about equally many edges."""
    parts: int = 10
    """Ranges of nodes of the paper's style."""
    tables: Tables = "adamw"
    """Optimizer of the sparse weights: adamw, exact; lazy, AdamW on the rows of a batch
    only, an approximation; adagrad, one number per row instead of the moments."""

    def __post_init__(self) -> None:
        require_positive(self, "size", "parts")

    @property
    def depends_on_train(self) -> bool:
        return self.style == "shuffled"

    @property
    def sparse_optimizer(self) -> str:
        return self.tables

    def lazy_batches(
        self, graph: Graph, train: Ids, generator: torch.Generator
    ) -> Iterator[LazyBatch]:
        return STYLES[self.style](self, graph, train, generator)


def shuffled_rows(
    sampler: RowSampler, graph: Graph, train: Ids, generator: torch.Generator
) -> Iterator[LazyBatch]:
    """Every train node once, in batches of equal size except the last."""
    order = torch.randperm(len(train), generator=generator)
    for part in order.split(sampler.size) if len(order) else ():
        ids = train[part].to(graph.labels.device)
        yield partial(_row_batch, graph, ids, torch.ones(len(ids), device=ids.device))


def paper_range(
    sampler: RowSampler, graph: Graph, train: Ids, generator: torch.Generator
) -> Iterator[LazyBatch]:
    """One random range of nodes; the loss is that of its train nodes."""
    bounds = paper_ranges(graph.adjacency, sampler.parts)
    part = int(torch.randint(len(bounds) - 1, (1,), generator=generator))
    ids = torch.arange(bounds[part], bounds[part + 1], device=graph.labels.device)
    weight = train_mask(graph, train)[ids]
    if weight.any():
        yield partial(_row_batch, graph, ids, weight)


def _row_batch(graph: Graph, ids: Ids, weight: Float[Tensor, " nodes"]) -> Batch:
    return Batch(graph.select_rows(ids), weight)


def paper_ranges(adjacency: Adjacency, parts: int) -> list[int]:
    """Bounds of ranges of nodes with about equally many entries.

    The same as those of the paper's code: if `parts` divides the number of entries, the
    last two ranges are one.
    """
    degrees, nodes = adjacency.global_degrees.cpu(), adjacency.num_rows
    first, nnz = degrees.cumsum(0) - degrees, int(degrees.sum())
    size = max(1, nnz // parts)
    targets = torch.tensor(range(size, nnz, size)[:-1], dtype=torch.int64)
    with_edges = degrees.nonzero()[:, 0]
    index = torch.searchsorted(first[with_edges], targets)
    bounds = with_edges[index[index < len(with_edges)]].unique()
    return [0, *bounds.tolist(), nodes]


STYLES: dict[
    Style, Callable[[RowSampler, Graph, Ids, torch.Generator], Iterator[LazyBatch]]
] = {
    "shuffled": shuffled_rows,
    "paper": paper_range,
}
