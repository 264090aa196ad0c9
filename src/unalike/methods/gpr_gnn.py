"""GPR-GNN: a perceptron's scores, spread by a PageRank with learned weights."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.data.graph import Graph
from unalike.methods.base import MessagePassingMethod
from unalike.nn.mlp import MLP, layer_sizes
from unalike.nn.normalized_adjacency import GCNNorm
from unalike.nn.sparse_linear import InputLinear


@dataclass(frozen=True, kw_only=True)
class GPRGNN(MessagePassingMethod):
    """Σ γₖ Âᵏ Z₀, with Z₀ = MLP(X); γ is learned and begins as in APPNP."""

    paper = "Chien et al. 2021, https://arxiv.org/abs/2006.07988"
    stackable_options = MessagePassingMethod.stackable_options | {"alpha"}

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

    def build_module(self, graph: Graph) -> nn.Module:
        return GPRGNNModule(self, graph)


class GPRGNNModule(nn.Module):
    """Σ γₖ Âᵏ MLP(X)."""

    def __init__(self, o: GPRGNN, graph: Graph) -> None:
        super().__init__()
        sizes = layer_sizes(graph.num_features, o.hidden, graph.num_classes, o.layers)[
            1:
        ]
        self.mlp = MLP(InputLinear("features", graph, sizes[0]), sizes, o.dropout)
        self.gamma = nn.Parameter(ppr_coefficients(o.alpha, o.hops))

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        a_hat = GCNNorm.of(batch.adjacency)
        z = self.mlp(batch.features)
        total = self.gamma[0] * z
        for gamma in self.gamma[1:]:
            z = a_hat @ z
            total = total + gamma * z
        return total


def ppr_coefficients(alpha: float, hops: int) -> Float[Tensor, " powers"]:
    """α (1 − α)ᵏ for every power but the last, which takes what remains."""
    left = (1 - alpha) ** torch.arange(hops + 1)
    return torch.cat([alpha * left[:-1], left[-1:]])
