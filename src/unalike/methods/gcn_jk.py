"""GCN-JK: graph convolutions whose outputs are joined by jumping knowledge."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from jaxtyping import Float
from torch import Tensor, nn

from unalike.graph import Graph
from unalike.methods.layers.bridge import NormActDropLinear, Shift
from unalike.methods.layers.entry import InputLinear
from unalike.methods.layers.jumping import JUMPS, Jump
from unalike.methods.layers.mlp import widths
from unalike.methods.layers.normalised import Normalised
from unalike.methods.method import MessagePassing


@dataclass(frozen=True, kw_only=True)
class GCNJK(MessagePassing):
    """A linear map of what all graph convolutions gave, joined by jumping knowledge."""

    paper = "Xu et al. 2018, https://arxiv.org/abs/1806.03536"

    hidden: int = 32
    """Width of every layer."""
    layers: int = 2
    """Convolutions."""
    dropout: float = 0.5
    """Share of hidden numbers dropped while training."""
    batch_norm: bool = True
    """Batch norm between convolutions."""
    jump: Jump = "max"
    """How outputs are joined: the largest numbers, side by side, or a weighed mean."""

    def build_module(self, graph: Graph) -> nn.Module:
        return GCNJKModule(self, graph)


class GCNJKModule(nn.Module):
    """jump(x_1, …, x_L) W + b, where x_l is the output of convolution l."""

    def __init__(self, o: GCNJK, graph: Graph) -> None:
        super().__init__()
        sizes = widths(graph.num_features, o.hidden, o.hidden, o.layers)
        self.first = InputLinear(
            "features", graph, sizes[1], bias=False, init="glorot", defer=True
        )
        self.blocks = nn.ModuleList(
            NormActDropLinear(*ends, o.dropout, batch_norm=o.batch_norm, init="glorot")
            for ends in pairwise(sizes[1:])
        )
        self.bias = Shift(sizes[-1])
        self.jump = JUMPS[o.jump](o.layers, o.hidden)
        self.final = nn.Linear(self.jump.width, graph.num_classes)

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        a_hat = Normalised.of(batch.adjacency)
        x, outputs = a_hat @ self.first(batch.features), []
        for block in self.blocks:
            assert isinstance(block, NormActDropLinear)
            hidden, x = block.with_hidden(x)
            outputs.append(hidden)
            x = a_hat @ x
        return self.final(self.jump([*outputs, self.bias(x)]))
