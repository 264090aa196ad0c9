"""LINKX: embed adjacency rows and features apart, then mix them."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Graph
from unalike.methods.base import Directions, RowWiseMethod, with_directions
from unalike.nn.linear import ConcatResidual, value
from unalike.nn.mlp import layer_sizes, make_mlp, mlp_after_first_layer
from unalike.nn.module import (
    InputLinear,
    SparseInputModule,
    SparseProducts,
    SparseWeightSpec,
)


@dataclass(frozen=True, kw_only=True)
class LINKX(RowWiseMethod):
    """MLP(relu(W [a; x] + a + x)), with a = MLP(adjacency row), x = MLP(features)."""

    paper = "Lim et al. 2021, https://arxiv.org/abs/2110.14446"

    hidden: int = 32
    """Width of every hidden layer."""
    layers: int = 1
    """Linear maps of the final perceptron."""
    dropout: float = 0.5
    """Share of hidden numbers dropped in the final perceptron while training."""
    edge_layers: int = 1
    """Linear maps of the perceptron on adjacency rows."""
    feature_layers: int = 1
    """Linear maps of the perceptron on features."""
    inner_activation: bool = False
    """A ReLU on the mixture before a and x are added."""
    inner_dropout: float = 0.0
    """Share of the mixture dropped while training, before a and x are added."""
    directions: Directions = "out"
    """Neighbours a node is known by: those it points at, those that point at it, …"""

    def prepare(self, graph: Graph) -> Graph:
        return with_directions(graph, self.directions)

    def network(self, graph: Graph) -> SparseInputModule:
        return LINKXModule(self, graph)


class LINKXModule(SparseInputModule):
    def __init__(self, of: LINKX, graph: Graph) -> None:
        edges = layer_sizes(
            graph.adjacency.num_cols_global, of.hidden, of.hidden, of.edge_layers
        )
        features = layer_sizes(
            graph.num_features, of.hidden, of.hidden, of.feature_layers
        )
        entry = InputLinear(graph, SparseWeightSpec(*features[:2]))
        table = SparseWeightSpec(*edges[:2], held=graph.adjacency.local_cols)
        super().__init__({"edges": table, **entry.tables})
        self.entry = entry
        self.only_tables = entry.sparse
        self.edges = mlp_after_first_layer(edges, dropout=0.0, joined=True)
        self.features = mlp_after_first_layer(features, dropout=0.0, joined=True)
        self.mix = ConcatResidual(
            of.hidden, of.inner_dropout, active=of.inner_activation
        )
        sizes = layer_sizes(of.hidden, of.hidden, graph.num_classes, of.layers)
        self.final = make_mlp(sizes, of.dropout)

    def inputs(self, batch: Graph) -> dict[str, Adjacency]:
        return {"edges": batch.adjacency, **self.entry.inputs(batch)}

    def forward(
        self, batch: Graph, first: SparseProducts
    ) -> Float[Tensor, "nodes classes"]:
        a = self.edges(first["edges"])
        x = self.features(self.entry(batch, first))
        return value(self.final(self.mix(a, x)))
