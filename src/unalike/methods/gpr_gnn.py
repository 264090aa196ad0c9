"""GPR-GNN: MLP, then generalised PageRank with learned coefficients."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.data.graph import Graph
from unalike.methods.base import MessagePassingMethod
from unalike.nn.linear import Dropout
from unalike.nn.mlp import MLP, layer_sizes
from unalike.nn.normalized_adjacency import GCNNorm
from unalike.nn.sparse_linear import InputLinear
from unalike.options import later_option


@dataclass(frozen=True, kw_only=True)
class GPRGNN(MessagePassingMethod):
    """Σₖ γₖ Âᵏ Z₀, with Z₀ = MLP(X); γ is learned and starts as in APPNP."""

    paper = "Chien et al. 2021, https://arxiv.org/abs/2006.07988"
    suits = (
        "few nodes are labelled, and it is not known at which distance nodes are alike"
    )
    stackable_options = MessagePassingMethod.stackable_options | {"alpha"}

    hidden: int = 32
    """Width of every hidden layer of the MLP."""
    layers: int = 2
    """Linear layers of the MLP."""
    dropout: float = 0.5
    """Fraction of hidden units dropped in training."""
    alpha: float = 0.1
    """γₖ starts as α (1 − α)ᵏ; the paper's code uses only this value."""
    hops: int = 10
    """Propagation steps K."""
    propagation_dropout: float = later_option(0.0)
    """Fraction of the MLP's outputs dropped before they are propagated, in training."""

    def build_module(self, graph: Graph) -> nn.Module:
        return GPRGNNModule(self, graph)


class GPRGNNModule(nn.Module):
    """Σₖ γₖ Âᵏ MLP(X)."""

    def __init__(self, o: GPRGNN, graph: Graph) -> None:
        super().__init__()
        features, classes = graph.num_features, graph.num_classes
        sizes = layer_sizes(features, o.hidden, classes, o.layers)[1:]
        self.mlp = MLP(InputLinear("features", graph, sizes[0]), sizes, o.dropout)
        p = o.propagation_dropout
        self.dropout = Dropout(p) if p else nn.Identity()
        self.gamma = nn.Parameter(ppr_coefficients(o.alpha, o.hops))

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        a_hat = GCNNorm.of(batch.adjacency)
        z = self.dropout(self.mlp(batch.features))
        out = self.gamma[0] * z
        for gamma in self.gamma[1:]:
            z = a_hat @ z
            out = out + gamma * z
        return out


def ppr_coefficients(alpha: float, hops: int) -> Float[Tensor, " powers"]:
    """α (1 − α)ᵏ for k < K, and (1 − α)ᴷ for the last; they sum to 1."""
    powers = (1 - alpha) ** torch.arange(hops + 1)
    return torch.cat([alpha * powers[:-1], powers[-1:]])
