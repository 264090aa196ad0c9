"""GCN: graph convolutions with batch norm, ReLU and dropout between them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from jaxtyping import Float
from torch import Tensor, nn

from unalike.graph import Graph
from unalike.methods.layers.bridge import NormActDropLinear, Shift
from unalike.methods.layers.entry import InputLinear
from unalike.methods.layers.mlp import widths
from unalike.methods.layers.normalised import Normalised
from unalike.methods.method import MessagePassing


@dataclass(frozen=True, kw_only=True)
class GCN(MessagePassing):
    """Â x W + b, with batch norm, ReLU and dropout between two such layers."""

    paper = "Kipf and Welling 2017, https://arxiv.org/abs/1609.02907"

    hidden: int = 32
    """Width of every hidden layer."""
    layers: int = 2
    """Convolutions."""
    dropout: float = 0.5
    """Share of hidden numbers dropped while training."""
    batch_norm: bool = True
    """Batch norm between convolutions."""

    def build_module(self, graph: Graph) -> nn.Module:
        return GCNModule(self, graph)


class GCNModule(nn.Module):
    """Â dropout(relu(norm(x))) W, layer by layer, plus b."""

    def __init__(self, o: GCN, graph: Graph) -> None:
        super().__init__()
        sizes = widths(graph.num_features, o.hidden, graph.num_classes, o.layers)
        self.first = InputLinear(
            "features", graph, sizes[1], bias=False, init="glorot", defer=True
        )
        self.blocks = nn.ModuleList(
            NormActDropLinear(*ends, o.dropout, batch_norm=o.batch_norm, init="glorot")
            for ends in pairwise(sizes[1:])
        )
        self.bias = Shift(sizes[-1])

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        a_hat = Normalised.of(batch.adjacency)  # D^-1/2 (A + I) D^-1/2
        x = a_hat @ self.first(batch.features)
        for block in self.blocks:
            x = a_hat @ block(x)
        return self.bias(x)
