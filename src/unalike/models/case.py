"""Case: one node taken apart into what its inputs add to a prediction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from unalike.adjacency import Adjacency
from unalike.graph import Graph
from unalike.training.sparse_linear import (
    Products,
    forward_with,
    sparse_layers,
    sparse_products,
)

AT_ONCE = 1 << 12
"""Inputs that are taken away in one pass, each from a copy of the node."""

Numbers = Float[Tensor, " inputs"]


@dataclass(frozen=True, eq=False)
class Part:
    """Inputs of one kind, and what they did to the log-odds."""

    of_edges: bool
    columns: Int[Tensor, " inputs"]
    values: Numbers
    shares: Numbers
    """Slope times vector: with those of all parts and a rest, the log-odds."""
    changes: Numbers
    """What the log-odds would lose without the input."""


@dataclass(frozen=True, eq=False)
class Case:
    """A prepared row, and the two classes whose log-odds are in question."""

    network: nn.Module
    row: Graph
    classes: tuple[int, int]
    temperature: float = 1.0

    @cached_property
    def first(self) -> Products:
        """The outputs of the `SparseLinear` layers for the row."""
        return sparse_products(self.network, self.row)

    def odds(self, rows: Graph, first: Products) -> Float[Tensor, " rows"]:
        """The log-odds of the first class against the second."""
        scores = forward_with(self.network, rows, first).double()
        odds = scores[:, self.classes[0]] - scores[:, self.classes[1]]
        return odds / self.temperature

    @cached_property
    def log_odds(self) -> float:
        return float(self.odds(self.row, self.first)[0])

    def parts(self) -> Iterator[Part]:
        """The inputs of each `SparseLinear` layer, and the dense features."""
        leaves = {name: x.detach().requires_grad_() for name, x in self.first.items()}
        dense = self.row.features
        if isinstance(dense, Adjacency):
            odds = self.odds(self.row, leaves)
        else:
            dense = dense.detach().requires_grad_()
            odds = self.odds(replace(self.row, features=dense), leaves)
        wanted = [*leaves.values(), *([] if isinstance(dense, Adjacency) else [dense])]
        slopes = torch.autograd.grad(odds.sum(), wanted, materialize_grads=True)
        for name, slope in zip(leaves, slopes, strict=False):
            yield self._of_table(name, slope[0])
        if not isinstance(dense, Adjacency):
            yield self._of_dense(dense.detach()[0], slopes[-1][0])

    def _of_table(self, name: str, slope: Float[Tensor, " width"]) -> Part:
        layer = sparse_layers(self.network)[name]
        matrix = getattr(self.row, layer.source)
        columns, values = matrix.columns.long(), matrix.values
        if values is None:
            values = slope.new_ones(len(columns))
        vectors = values[:, None] * layer.weight[columns]

        def without(some: slice) -> tuple[Graph, Products]:
            left = self.first[name] - vectors[some]
            rows = self._copies(len(left))
            return rows, {**self._repeated(len(left)), name: left}

        shares = vectors.double() @ slope.double()
        edges = layer.source == "adjacency"
        return Part(edges, columns, values, shares, self._changes(columns, without))

    def _of_dense(
        self, features: Float[Tensor, " features"], slope: Float[Tensor, " features"]
    ) -> Part:
        columns = features.nonzero()[:, 0]
        values = features[columns]

        def without(some: slice) -> tuple[Graph, Products]:
            chosen = columns[some]
            left = features.repeat(len(chosen), 1)
            left[torch.arange(len(chosen)), chosen] = 0
            rows = replace(self._copies(len(chosen)), features=left)
            return rows, self._repeated(len(chosen))

        shares = values.double() * slope[columns].double()
        return Part(False, columns, values, shares, self._changes(columns, without))

    @torch.no_grad()
    def _changes(
        self,
        columns: Int[Tensor, " inputs"],
        without: Callable[[slice], tuple[Graph, Products]],
    ) -> Numbers:
        found = torch.zeros(len(columns), dtype=torch.float64)
        for begin in range(0, len(columns), AT_ONCE):
            some = slice(begin, begin + AT_ONCE)
            found[some] = self.log_odds - self.odds(*without(some)).cpu()
        return found

    def _repeated(self, count: int) -> Products:
        return {name: x.expand(count, -1) for name, x in self.first.items()}

    def _copies(self, count: int) -> Graph:
        """The node so many times; its sparse rows went into the first layer already."""
        features = self.row.features
        return Graph(
            adjacency=_empty(count, self.row.adjacency),
            features=_empty(count, features)
            if isinstance(features, Adjacency)
            else features.expand(count, -1),
            labels=self.row.labels.expand(count),
            num_classes=self.row.num_classes,
            directed=self.row.directed,
        )


def _empty(count: int, like: Adjacency) -> Adjacency:
    starts = torch.zeros(count + 1, dtype=torch.int64, device=like.starts.device)
    return Adjacency(starts, like.columns[:0], like.width)
