"""LINKX: embed adjacency rows and features apart, then mix them."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from unalike.adjacency import Adjacency
from unalike.graph import Graph
from unalike.methods.directions import Directions, look
from unalike.methods.layers.affine import value
from unalike.methods.layers.entry import Entry
from unalike.methods.layers.mix import Mix
from unalike.methods.layers.mlp import after_table, mlp, widths
from unalike.methods.method import RowWise
from unalike.training.network import First, Network, Table


@dataclass(frozen=True, kw_only=True)
class LINKX(RowWise):
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
        edges = widths(
            graph.adjacency.num_columns, of.hidden, of.hidden, of.edge_layers
        )
        features = widths(graph.num_features, of.hidden, of.hidden, of.feature_layers)
        entry = Entry(graph, Table(*features[:2]))
        table = Table(*edges[:2], held=graph.adjacency.held)
        super().__init__({"edges": table, **entry.tables})
        self.entry = entry
        self.only_tables = entry.sparse
        self.edges = after_table(edges, dropout=0.0, joined=True)
        self.features = after_table(features, dropout=0.0, joined=True)
        self.mix = Mix(of.hidden, of.inner_dropout, active=of.inner_activation)
        sizes = widths(of.hidden, of.hidden, graph.num_classes, of.layers)
        self.final = mlp(sizes, of.dropout)

    def inputs(self, batch: Graph) -> dict[str, Adjacency]:
        return {"edges": batch.adjacency, **self.entry.inputs(batch)}

    def forward(self, batch: Graph, first: First) -> Float[Tensor, "nodes classes"]:
        a = self.edges(first["edges"])
        x = self.features(self.entry(batch, first))
        return value(self.final(self.mix(a, x)))
