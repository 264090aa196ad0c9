"""GAT, and GAT with jumping knowledge."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from unalike.data.graph import Graph
from unalike.methods.residual_options import ResidualOptions
from unalike.nn.attention import Attention, GATLayers, head_widths
from unalike.nn.jumping_knowledge import JUMPING_KNOWLEDGE, Jump
from unalike.nn.sparse_linear import InputLinear


@dataclass(frozen=True, kw_only=True)
class GAT(ResidualOptions):
    """Σ_j softmax_j(LeakyReLU(a W x_j + a' W x_i)) W x_j over neighbours j, plus b.

    Batch norm, ELU and dropout are between two layers. The heads of a layer are
    concatenated, those of the last are averaged.
    """

    paper = "Veličković et al. 2018, https://arxiv.org/abs/1710.10903"
    suits = "neighbours agree, and some of them count more than others"
    uses_edge_weights = False

    hidden: int = 8
    """Width of each head of a hidden layer; the paper tries 4, 8, 12 and 32."""
    heads: int = 8
    """Heads of each layer; the paper tries 2, 4 and 8."""
    layers: int = 2
    """Attention layers, at least two."""

    def build_module(self, graph: Graph) -> nn.Module:
        if self.is_deep:
            return self.deep_module(graph, "last")
        return GATModule(self, graph)

    def deep_module(self, graph: Graph, jump: Jump) -> nn.Module:
        """Residual layers, a jump and a linear layer."""
        width = self.heads * self.hidden
        convs = [Attention(self.heads, width) for _ in range(self.layers)]
        return self.residual_layers(graph, convs, width, self.residual, jump)


class GATModule(nn.Module):
    """Attention layers; the linear map of the first one is `first`."""

    def __init__(self, o: GAT, graph: Graph, out_features: int | None = None) -> None:
        super().__init__()
        features, out = graph.num_features, out_features or graph.num_classes
        sizes = head_widths(features, o.hidden, out, o.layers, o.heads)
        self.first = InputLinear("features", graph, sizes[1], bias=False, init="glorot")
        self.layers = GATLayers(
            sizes,
            o.heads,
            o.dropout,
            batch_norm=o.batch_norm,
            conv_bias=o.conv_bias,
            mean_last_heads=out_features is None,
        )

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        return self.layers(batch.adjacency, self.first(batch.features))[-1]


@dataclass(frozen=True, kw_only=True)
class GATJK(GAT):
    """jump(x_1, …, x_L) W + b, where x_l is the output of attention layer l."""

    paper = "Xu et al. 2018, https://arxiv.org/abs/1806.03536"
    suits = "near and far neighbours should count apart, and some more than others"

    jump: Jump = "max"
    """Combine the outputs of all layers: maximum, concatenation, LSTM or sum."""

    def build_module(self, graph: Graph) -> nn.Module:
        if self.is_deep:
            return self.deep_module(graph, self.jump)
        return GATJKModule(self, graph)


class GATJKModule(GATModule):
    """jump(x_1, …, x_L) W + b, where x_l is the output of attention layer l."""

    def __init__(self, o: GATJK, graph: Graph) -> None:
        super().__init__(o, graph, o.hidden)
        self.jump = JUMPING_KNOWLEDGE[o.jump](max(o.layers, 2), o.heads * o.hidden)
        self.final = nn.Linear(self.jump.out_features, graph.num_classes)

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        outputs = self.layers(batch.adjacency, self.first(batch.features))
        return self.final(self.jump(outputs))
