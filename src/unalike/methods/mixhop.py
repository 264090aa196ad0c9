"""MixHop: layers that look at several distances side by side."""

from dataclasses import dataclass
from itertools import pairwise

from jaxtyping import Float
from torch import Tensor, nn

from unalike.graph import Graph
from unalike.methods.layers.affine import value
from unalike.methods.layers.bridge import BridgedLinear
from unalike.methods.layers.message_passing import MessagePassingNetwork, flow_blocks
from unalike.methods.layers.mlp import widths
from unalike.methods.layers.normalised import Normalised
from unalike.methods.method import MessagePassing
from unalike.training.network import First, Network, Table


@dataclass(frozen=True, kw_only=True)
class MixHop(MessagePassing):
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

    def network(self, graph: Graph) -> Network:
        return _Network(self, graph)


class _Network(MessagePassingNetwork):
    def __init__(self, of: MixHop, graph: Graph) -> None:
        blocks = of.hops + 1
        sizes = [
            blocks * width
            for width in widths(0, of.hidden, graph.num_classes, of.layers)[1:]
        ]
        super().__init__(graph, Table(graph.num_features, sizes[0]))
        self.hops = range(of.hops + 1)
        self.further = nn.ModuleList(
            BridgedLinear(before, after, of.dropout, relu="after")
            for before, after in pairwise(sizes)
        )
        self.final = nn.Linear(sizes[-1], graph.num_classes)

    def forward(self, batch: Graph, first: First) -> Float[Tensor, "nodes classes"]:
        adjacency = Normalised.of(batch.adjacency)
        x = self.enter_flown(batch, first, adjacency, self.hops)
        for layer in self.further:
            x = flow_blocks(adjacency, value(layer(x)), self.hops)
        return self.final(x)
