"""The method of that name."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from unalike.data.graph import Graph
from unalike.methods.base import MessagePassingMethod
from unalike.nn.linear import value
from unalike.nn.mlp import layer_sizes, mlp_after_first_layer
from unalike.nn.module import (
    MessagePassingModule,
    SparseInputModule,
    SparseProducts,
    SparseWeightSpec,
)
from unalike.nn.normalized_adjacency import GCNNorm


@dataclass(frozen=True, kw_only=True)
class APPNP(MessagePassingMethod):
    """Z = (1 − α) Â Z + α Z₀, a few times, with Z₀ = MLP(X)."""

    paper = "Klicpera et al. 2019, https://arxiv.org/abs/1810.05997"
    may_differ = MessagePassingMethod.may_differ | {"alpha"}

    hidden: int = 32
    """Width of every hidden layer of the perceptron."""
    layers: int = 2
    """Linear maps of the perceptron."""
    dropout: float = 0.5
    """Share of hidden numbers dropped while training."""
    alpha: float = 0.1
    """Chance to return to the start; the paper tries .1, .2, .5 and .9."""
    hops: int = 10
    """Propagations."""

    def network(self, graph: Graph) -> SparseInputModule:
        return APPNPModule(self, graph)


class APPNPModule(MessagePassingModule):
    alpha: Float[Tensor, ""]

    def __init__(self, of: APPNP, graph: Graph) -> None:
        features, classes = graph.num_features, graph.num_classes
        sizes = layer_sizes(features, of.hidden, classes, of.layers)
        super().__init__(graph, SparseWeightSpec(*sizes[:2]))
        self.rest = mlp_after_first_layer(sizes, of.dropout)
        self.hops = of.hops
        self.fix(alpha=of.alpha)

    def forward(
        self, batch: Graph, first: SparseProducts
    ) -> Float[Tensor, "nodes classes"]:
        adjacency = GCNNorm.of(batch.adjacency)
        start = value(self.rest(self.entry(batch, first)))
        z, share = start, self.alpha.to(start.dtype) * start
        for _ in range(self.hops):
            z = adjacency.back_to(share, self.alpha, z)
        return z
