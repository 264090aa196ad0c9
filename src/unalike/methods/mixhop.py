"""MixHop: layers that concatenate several powers of the adjacency."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from jaxtyping import Float
from torch import Tensor, nn

from unalike.data.graph import Graph
from unalike.methods.base import MessagePassingMethod
from unalike.nn.mlp import layer_sizes
from unalike.nn.norm import NormActDropLinear
from unalike.nn.normalized_adjacency import GCNNorm
from unalike.nn.sparse_linear import InputLinear


@dataclass(frozen=True, kw_only=True)
class MixHop(MessagePassingMethod):
    """[Â⁰ (x W₀ + b₀); Â¹ (x W₁ + b₁); …] up to `hops`; a linear layer at the end."""

    paper = "Abu-El-Haija et al. 2019, https://arxiv.org/abs/1905.00067"
    suits = "nodes two steps away are more alike than neighbours"

    hidden: int = 32
    """Width of every hidden layer, for each power of Â."""
    layers: int = 2
    """Layers before the last linear layer."""
    dropout: float = 0.5
    """Fraction of hidden units dropped in training."""
    hops: int = 2
    """The highest power of Â."""

    def build_module(self, graph: Graph) -> nn.Module:
        return MixHopModule(self, graph)


class MixHopModule(nn.Module):
    """x = [Â⁰ (x W₀ + b₀); Â¹ (x W₁ + b₁); …] in each layer, then x W + b."""

    def __init__(self, o: MixHop, graph: Graph) -> None:
        super().__init__()
        self.hops = range(o.hops + 1)
        sizes = [
            len(self.hops) * width
            for width in layer_sizes(0, o.hidden, graph.num_classes, o.layers)[1:]
        ]
        self.first = InputLinear("features", graph, sizes[0])
        self.blocks = nn.ModuleList(
            NormActDropLinear(*ends, o.dropout) for ends in pairwise(sizes)
        )
        self.final = nn.Linear(sizes[-1], graph.num_classes)

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        a_hat = GCNNorm.of(batch.adjacency)
        x = a_hat.powers(self.hops, self.first.defer(batch.features))
        for block in self.blocks:
            x = a_hat.powers(self.hops, block(x))
        return self.final(x)
