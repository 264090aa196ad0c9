"""GAT: layers in which a node weighs its neighbours."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from unalike.graph import Graph
from unalike.methods.layers.attention import Attentions, head_widths
from unalike.methods.layers.entry import InputLinear
from unalike.methods.method import MessagePassing


@dataclass(frozen=True, kw_only=True)
class GAT(MessagePassing):
    """Softmax_j(LeakyReLU(a W x_j + a' W x_i)) W x_j summed over neighbours j, plus b.

    Batch norm, ELU and dropout lie between two layers. The heads of a layer are
    concatenated, those of the last are averaged.
    """

    paper = "Veličković et al. 2018, https://arxiv.org/abs/1710.10903"

    hidden: int = 8
    """Width of each head of a hidden layer; the paper tries 4, 8, 12 and 32."""
    heads: int = 8
    """Heads of each layer; the paper tries 2, 4 and 8."""
    layers: int = 2
    """Attention layers, at least two."""
    dropout: float = 0.5
    """Share of hidden numbers dropped while training."""
    batch_norm: bool = True
    """Batch norm between layers, which Veličković et al. do without."""

    def build_module(self, graph: Graph) -> nn.Module:
        return GATModule(self, graph)


class GATModule(nn.Module):
    """Attention layers behind a linear map of the features."""

    def __init__(self, o: GAT, graph: Graph) -> None:
        super().__init__()
        features, classes = graph.num_features, graph.num_classes
        sizes = head_widths(features, o.hidden, classes, o.layers, o.heads)
        self.first = InputLinear("features", graph, sizes[1], bias=False, init="glorot")
        self.layers = Attentions(
            sizes, o.heads, o.dropout, normed=o.batch_norm, averaged=True
        )

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        return self.layers(batch.adjacency, self.first(batch.features))[-1]
