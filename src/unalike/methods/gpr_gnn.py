"""GPR-GNN: a perceptron's scores, spread by a PageRank with learned weights."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

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
class GPRGNN(MessagePassingMethod):
    """Σ γₖ Âᵏ Z₀, with Z₀ = MLP(X); γ is learned and begins as in APPNP."""

    paper = "Chien et al. 2021, https://arxiv.org/abs/2006.07988"
    may_differ = MessagePassingMethod.may_differ | {"alpha"}

    hidden: int = 32
    """Width of every hidden layer of the perceptron."""
    layers: int = 2
    """Linear maps of the perceptron."""
    dropout: float = 0.5
    """Share of hidden numbers dropped while training."""
    alpha: float = 0.1
    """γₖ begins as α (1 − α)ᵏ; the paper's program tries no other value."""
    hops: int = 10
    """Propagations."""

    def network(self, graph: Graph) -> SparseInputModule:
        return GPRGNNModule(self, graph)


class GPRGNNModule(MessagePassingModule):
    def __init__(self, of: GPRGNN, graph: Graph) -> None:
        features, classes = graph.num_features, graph.num_classes
        sizes = layer_sizes(features, of.hidden, classes, of.layers)
        super().__init__(graph, SparseWeightSpec(*sizes[:2]))
        self.rest = mlp_after_first_layer(sizes, of.dropout)
        self.gamma = nn.Parameter(ppr_coefficients(of.alpha, of.hops))

    def forward(
        self, batch: Graph, first: SparseProducts
    ) -> Float[Tensor, "nodes classes"]:
        adjacency = GCNNorm.of(batch.adjacency)
        z = value(self.rest(self.entry(batch, first)))
        total = self.gamma[0] * z
        for gamma in self.gamma[1:]:
            z = adjacency @ z
            total = total + gamma * z
        return total


def ppr_coefficients(alpha: float, hops: int) -> Float[Tensor, " powers"]:
    """α (1 − α)ᵏ for every power but the last, which takes what remains."""
    left = (1 - alpha) ** torch.arange(hops + 1)
    return torch.cat([alpha * left[:-1], left[-1:]])
