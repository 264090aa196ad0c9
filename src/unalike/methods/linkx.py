"""LINKX: separate MLPs on adjacency rows and features, then a final MLP."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from unalike.data.graph import Graph
from unalike.methods.base import Directions, RowWiseMethod, with_directions
from unalike.nn.linear import ConcatResidual
from unalike.nn.mlp import MLP, layer_sizes
from unalike.nn.sparse_linear import InputLinear, in_draw_order


@dataclass(frozen=True, kw_only=True)
class LINKX(RowWiseMethod):
    """MLP(relu(W [h_A; h_X] + h_A + h_X)), with h_A = MLP(A) and h_X = MLP(X)."""

    paper = "Lim et al. 2021, https://arxiv.org/abs/2110.14446"
    suits = "neighbours differ, and the graph is large and has features"

    hidden: int = 32
    """Width of every hidden layer."""
    layers: int = 1
    """Linear layers of the final MLP."""
    dropout: float = 0.5
    """Fraction of hidden units of the final MLP dropped in training."""
    edge_layers: int = 1
    """Linear layers of the MLP on adjacency rows."""
    feature_layers: int = 1
    """Linear layers of the MLP on features."""
    inner_activation: bool = False
    """Apply a ReLU to W [h_A; h_X] before h_A and h_X are added."""
    inner_dropout: float = 0.0
    """Fraction of W [h_A; h_X] dropped in training, before h_A and h_X are added."""
    directions: Directions = "out"
    """Edges of a node: outgoing, incoming, both in separate columns, or undirected."""

    def prepare(self, graph: Graph) -> Graph:
        return with_directions(graph, self.directions)

    def build_module(self, graph: Graph) -> nn.Module:
        return LINKXModule(self, graph)


class LINKXModule(nn.Module):
    """MLP_f(relu(W [h_A; h_X] + h_A + h_X)) with h_A = MLP_A(A) and h_X = MLP_X(X)."""

    def __init__(self, o: LINKX, graph: Graph) -> None:
        super().__init__()
        h = o.hidden
        sizes_a, sizes_x = (
            layer_sizes(h, h, h, layers)[1:]
            for layers in (o.edge_layers, o.feature_layers)
        )
        first = {
            source: InputLinear(source, graph, h) for source in in_draw_order(graph)
        }
        self.mlp_a = MLP(first["adjacency"], sizes_a, defer_last=True)
        self.mlp_x = MLP(first["features"], sizes_x, defer_last=True)
        self.combine = ConcatResidual(h, o.inner_dropout, activation=o.inner_activation)
        self.mlp_f = MLP.of_sizes(
            layer_sizes(h, h, graph.num_classes, o.layers), o.dropout
        )

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        h_a, h_x = self.mlp_a(batch.adjacency), self.mlp_x(batch.features)
        return self.mlp_f(self.combine(h_a, h_x))  # relu(W [h_a; h_x] + h_a + h_x)
