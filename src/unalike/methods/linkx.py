"""LINKX: embed adjacency rows and features apart, then mix them."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.features import Features
from unalike.graph import Graph
from unalike.methods.directions import Directions, look
from unalike.methods.layers.dropout import Dropout
from unalike.methods.layers.mlp import after_table, mlp, widths
from unalike.methods.layers.table import table
from unalike.methods.method import Trained
from unalike.training.network import First, Network


@dataclass(frozen=True, kw_only=True)
class LINKX(Trained):
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
        return look(graph, self.directions)

    def network(self, graph: Graph) -> Network:
        return _Network(self, graph)


class _Network(Network):
    def __init__(self, of: LINKX, graph: Graph) -> None:
        edges = widths(graph.adjacency.width, of.hidden, of.hidden, of.edge_layers)
        features = widths(graph.num_features, of.hidden, of.hidden, of.feature_layers)
        super().__init__({"edges": table(*edges[:2]), "features": table(*features[:2])})
        self.edges = after_table(edges, dropout=0.0)
        self.features = after_table(features, dropout=0.0)
        self.mix = nn.Linear(2 * of.hidden, of.hidden)
        self.inner = nn.Sequential(
            *[Dropout(of.inner_dropout)] * bool(of.inner_dropout),
            *[nn.ReLU()] * of.inner_activation,
        )
        sizes = widths(of.hidden, of.hidden, graph.num_classes, of.layers)
        self.final = mlp(sizes, of.dropout)

    def inputs(self, batch: Graph) -> dict[str, Features]:
        return {"edges": batch.adjacency, "features": batch.features}

    def forward(self, batch: Graph, first: First) -> Float[Tensor, "nodes classes"]:
        a = self.edges(first["edges"])
        x = self.features(first["features"])
        w = self.inner(self.mix(torch.cat([a, x], 1)))
        return self.final(torch.relu(w + a + x))
