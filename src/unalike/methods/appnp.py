"""APPNP: MLP, then personalised PageRank of its logits."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from unalike.data.graph import Graph
from unalike.methods.base import MessagePassingMethod
from unalike.nn.init import register_constants
from unalike.nn.mlp import MLP, layer_sizes
from unalike.nn.normalized_adjacency import GCNNorm
from unalike.nn.sparse_linear import InputLinear


@dataclass(frozen=True, kw_only=True)
class APPNP(MessagePassingMethod):
    """Z = (1 − α) Â Z + α Z₀, repeated `hops` times, with Z₀ = MLP(X)."""

    paper = "Klicpera et al. 2019, https://arxiv.org/abs/1810.05997"
    suits = "neighbours agree, also over long distances, and few nodes are labelled"
    stackable_options = MessagePassingMethod.stackable_options | {"alpha"}

    hidden: int = 32
    """Width of every hidden layer of the MLP."""
    layers: int = 2
    """Linear layers of the MLP."""
    dropout: float = 0.5
    """Fraction of hidden units dropped in training."""
    alpha: float = 0.1
    """Teleport probability α; the paper tries .1, .2, .5 and .9."""
    hops: int = 10
    """Propagation steps."""

    def build_module(self, graph: Graph) -> nn.Module:
        return APPNPModule(self, graph)


class APPNPModule(nn.Module):
    """Z = (1 − α) Â Z + α Z₀, repeated, from Z = Z₀ = MLP(X)."""

    alpha: Float[Tensor, ""]

    def __init__(self, o: APPNP, graph: Graph) -> None:
        super().__init__()
        features, classes = graph.num_features, graph.num_classes
        sizes = layer_sizes(features, o.hidden, classes, o.layers)[1:]
        self.mlp = MLP(InputLinear("features", graph, sizes[0]), sizes, o.dropout)
        self.hops = o.hops
        register_constants(self, alpha=o.alpha)

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        a_hat = GCNNorm.of(batch.adjacency)
        z = z0 = self.mlp(batch.features)
        residual = self.alpha.to(z0.dtype) * z0
        for _ in range(self.hops):
            z = a_hat.appnp_step(residual, self.alpha, z)  # (1 − α) Â z + α z₀
        return z
