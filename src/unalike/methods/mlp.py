"""MLP on the features; the edges are not used."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from unalike.data.graph import Graph
from unalike.methods.base import RowWiseMethod, without_edges
from unalike.nn import mlp
from unalike.nn.sparse_linear import InputLinear


@dataclass(frozen=True, kw_only=True)
class MLP(RowWiseMethod):
    """MLP(X): linear layers with ReLU, batch norm and dropout between them."""

    paper = "Lim et al. 2021, https://arxiv.org/abs/2110.14446"
    suits = "edges say nothing; and always first, to see what edges add"
    needs_features = True

    hidden: int = 32
    """Width of every hidden layer."""
    layers: int = 2
    """Linear layers."""
    dropout: float = 0.5
    """Fraction of hidden units dropped in training."""

    def prepare(self, graph: Graph) -> Graph:
        return without_edges(graph)

    def build_module(self, graph: Graph) -> nn.Module:
        return MLPModule(self, graph)


class MLPModule(nn.Module):
    """MLP(X)."""

    def __init__(self, o: MLP, graph: Graph) -> None:
        super().__init__()
        features, classes = graph.num_features, graph.num_classes
        sizes = mlp.layer_sizes(features, o.hidden, classes, o.layers)[1:]
        first = InputLinear("features", graph, sizes[0])
        self.mlp = mlp.MLP(first, sizes, o.dropout)

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        return self.mlp(batch.features)
