"""MLP: a perceptron on the features; the edges play no part."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.adjacency import Adjacency
from unalike.graph import Graph
from unalike.methods.layers.affine import value
from unalike.methods.layers.entry import Entry
from unalike.methods.layers.mlp import after_table, widths
from unalike.methods.method import RowWise
from unalike.training.network import First, Network, Table


@dataclass(frozen=True, kw_only=True)
class MLP(RowWise):
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

    def network(self, graph: Graph) -> Network:
        sizes = widths(graph.num_features, self.hidden, graph.num_classes, self.layers)
        return _Network(graph, sizes, self.dropout)


class _Network(Network):
    def __init__(self, graph: Graph, sizes: list[int], dropout: float) -> None:
        entry = Entry(graph, Table(sizes[0], sizes[1]))
        super().__init__(entry.tables)
        self.entry = entry
        self.only_tables = entry.sparse
        self.rest = after_table(sizes, dropout)

    def inputs(self, batch: Graph) -> dict[str, Adjacency]:
        return self.entry.inputs(batch)

    def forward(self, batch: Graph, first: First) -> Float[Tensor, "nodes classes"]:
        return value(self.rest(self.entry(batch, first)))
