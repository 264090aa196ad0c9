"""The method of that name."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Graph
from unalike.methods.base import RowWiseMethod
from unalike.nn.linear import value
from unalike.nn.mlp import layer_sizes, mlp_after_first_layer
from unalike.nn.module import (
    InputLinear,
    SparseInputModule,
    SparseProducts,
    SparseWeightSpec,
)


@dataclass(frozen=True, kw_only=True)
class MLP(RowWiseMethod):
    """Linear maps with ReLU, batch norm and dropout between them."""

    paper = "Lim et al. 2021, https://arxiv.org/abs/2110.14446"

    hidden: int = 32
    """Width of every hidden layer."""
    layers: int = 2
    """Linear maps."""
    dropout: float = 0.5
    """Share of hidden numbers dropped while training."""

    def prepare(self, graph: Graph) -> Graph:
        """The nodes alone: batches need not carry edges that nothing looks at."""
        none = torch.empty(0, dtype=torch.int64)
        shape = graph.adjacency.shape
        return replace(graph, adjacency=Adjacency.from_edges(none, none, shape=shape))

    def network(self, graph: Graph) -> SparseInputModule:
        sizes = layer_sizes(
            graph.num_features, self.hidden, graph.num_classes, self.layers
        )
        return MLPModule(graph, sizes, self.dropout)


class MLPModule(SparseInputModule):
    def __init__(self, graph: Graph, sizes: list[int], dropout: float) -> None:
        entry = InputLinear(graph, SparseWeightSpec(sizes[0], sizes[1]))
        super().__init__(entry.tables)
        self.entry = entry
        self.only_tables = entry.sparse
        self.rest = mlp_after_first_layer(sizes, dropout)

    def inputs(self, batch: Graph) -> dict[str, Adjacency]:
        return self.entry.inputs(batch)

    def forward(
        self, batch: Graph, first: SparseProducts
    ) -> Float[Tensor, "nodes classes"]:
        return value(self.rest(self.entry(batch, first)))
