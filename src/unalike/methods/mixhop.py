"""MixHop: layers that look at several distances side by side."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from jaxtyping import Float
from torch import Tensor, nn

from unalike.data.graph import Graph
from unalike.methods.base import MessagePassingMethod
from unalike.nn.linear import value
from unalike.nn.mlp import NormActDropLinear, layer_sizes
from unalike.nn.module import (
    MessagePassingModule,
    SparseInputModule,
    SparseProducts,
    SparseWeightSpec,
    propagate_blocks,
)
from unalike.nn.normalized_adjacency import GCNNorm


@dataclass(frozen=True, kw_only=True)
class MixHop(MessagePassingMethod):
    """Âʲ (x Wⱼ + bⱼ) for j = 0 … hops, side by side; a linear map at the end."""

    paper = "Abu-El-Haija et al. 2019, https://arxiv.org/abs/1905.00067"

    hidden: int = 32
    """Width of every hidden layer, for each distance."""
    layers: int = 2
    """Layers before the last linear map."""
    dropout: float = 0.5
    """Share of hidden numbers dropped while training."""
    hops: int = 2
    """The largest distance."""

    def network(self, graph: Graph) -> SparseInputModule:
        return MixHopModule(self, graph)


class MixHopModule(MessagePassingModule):
    def __init__(self, of: MixHop, graph: Graph) -> None:
        blocks = of.hops + 1
        sizes = [
            blocks * width
            for width in layer_sizes(0, of.hidden, graph.num_classes, of.layers)[1:]
        ]
        super().__init__(graph, SparseWeightSpec(graph.num_features, sizes[0]))
        self.hops = range(of.hops + 1)
        self.further = nn.ModuleList(
            NormActDropLinear(before, after, of.dropout, relu="after")
            for before, after in pairwise(sizes)
        )
        self.final = nn.Linear(sizes[-1], graph.num_classes)

    def forward(
        self, batch: Graph, first: SparseProducts
    ) -> Float[Tensor, "nodes classes"]:
        adjacency = GCNNorm.of(batch.adjacency)
        x = self.enter_flown(batch, first, adjacency, self.hops)
        for layer in self.further:
            x = propagate_blocks(adjacency, value(layer(x)), self.hops)
        return self.final(x)
