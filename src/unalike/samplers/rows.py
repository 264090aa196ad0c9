"""Row sampler: batches of nodes with all their edges, for row-wise methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.data.adjacency import Adjacency, Ids
from unalike.data.graph import Graph
from unalike.samplers.base import Batch, LazyBatch, Sampler, split_train, train_mask

Style = Literal["shuffled", "paper", "iid"]
Tables = Literal["adamw", "lazy", "adagrad"]


@dataclass(frozen=True, kw_only=True)
class RowSampler(Sampler):
    """Some nodes with all their edges; exact for row-wise methods."""

    positive = ("size", "parts")
    runs_on_gpu = True

    size: int = 10_000
    """Train nodes in a batch of the shuffled style."""
    style: Style = "shuffled"
    """shuffled: every train node once an epoch; paper: an epoch is one step on one of
    `parts` ranges of nodes with about equally many edges, as in the paper's code; iid:
    one step on 1 / `parts` of the nodes, sampled uniformly, as in the paper's text."""
    parts: int = 10
    """Ranges of nodes of the style paper; 1 / fraction of the nodes of the style iid.
    """
    tables: Tables = "adamw"
    """Optimizer of the sparse weights: adamw, exact; lazy, AdamW on the rows of a batch
    only, an approximation; adagrad, one number per row instead of the moments."""

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
    for part in split_train(order, sampler.size):
        ids = train[part].to(graph.labels.device)
        yield partial(_row_batch, graph, ids, torch.ones(len(ids), device=ids.device))


def iid_rows(
    sampler: RowSampler, graph: Graph, train: Ids, generator: torch.Generator
) -> Iterator[LazyBatch]:
    """One uniform sample of distinct nodes; the loss is that of its train nodes."""
    # Batch norm has no statistics of a single node.
    size = max(2, graph.num_nodes // sampler.parts)
    ids = torch.randperm(graph.num_nodes, generator=generator)[:size]
    yield from _weighted_rows(graph, ids.to(graph.labels.device), train)


def paper_range(
    sampler: RowSampler, graph: Graph, train: Ids, generator: torch.Generator
) -> Iterator[LazyBatch]:
    """One random range of nodes; the loss is that of its train nodes."""
    bounds = paper_ranges(graph.adjacency, sampler.parts)
    part = int(torch.randint(len(bounds) - 1, (1,), generator=generator))
    first, last = bounds[part], bounds[part + 1]
    # Batch norm has no statistics of a single node.
    first = max(0, min(first, last - 2))
    ids = torch.arange(first, last, device=graph.labels.device)
    yield from _weighted_rows(graph, ids, train)


def _weighted_rows(graph: Graph, ids: Ids, train: Ids) -> Iterator[LazyBatch]:
    """A batch of these nodes, if one of them is a train node."""
    weight = train_mask(graph, train)[ids]
    if weight.any():
        yield partial(_row_batch, graph, ids, weight)


def _row_batch(graph: Graph, ids: Ids, weight: Float[Tensor, " nodes"]) -> Batch:
    return Batch(graph.select_rows(ids), weight)


def paper_ranges(adjacency: Adjacency, parts: int) -> list[int]:
    """Bounds of ranges of nodes with about equally many entries.

    The same as those of the paper's code: a range ends at the first row that begins
    behind its target, and if `parts` divides the number of entries, the last two ranges
    are one.
    """
    degrees, nodes = adjacency.global_degrees.cpu(), adjacency.num_rows
    first = degrees.cumsum(0) - degrees
    targets = torch.tensor(_paper_targets(adjacency, parts)[:-1], dtype=torch.int64)
    with_edges = degrees.nonzero()[:, 0]
    index = torch.searchsorted(first[with_edges], targets, right=True)
    bounds = with_edges[index[index < len(with_edges)]].unique()
    return [0, *bounds.tolist(), nodes]


def paper_range_count(adjacency: Adjacency, parts: int) -> int:
    """The ranges among which the paper's code samples, also those without a node."""
    return max(1, len(_paper_targets(adjacency, parts)))


def _paper_targets(adjacency: Adjacency, parts: int) -> range:
    """Entries at which the ranges of the paper's code should end."""
    nnz = int(adjacency.global_degrees.sum())
    size = max(1, nnz // parts)
    return range(size, nnz, size)


STYLES: dict[
    Style, Callable[[RowSampler, Graph, Ids, torch.Generator], Iterator[LazyBatch]]
] = {"shuffled": shuffled_rows, "paper": paper_range, "iid": iid_rows}
