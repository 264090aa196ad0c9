"""GCN, and GCN with jumping knowledge."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from jaxtyping import Float
from torch import Tensor, nn

from unalike.data.graph import Graph
from unalike.methods.residual_options import ResidualOptions
from unalike.nn.jumping_knowledge import JUMPING_KNOWLEDGE, Jump
from unalike.nn.mlp import layer_sizes
from unalike.nn.norm import Bias, NormActDropLinear, bias_before_norm
from unalike.nn.normalized_adjacency import GCNNorm, SelfLoops
from unalike.nn.residual_layers import GCNAggregate
from unalike.nn.sparse_linear import InputLinear
from unalike.options import later_option


@dataclass(frozen=True, kw_only=True)
class GCN(ResidualOptions):
    """x = Â x W in each layer, batch norm, ReLU and dropout between them; plus b."""

    paper = "Kipf and Welling 2017, https://arxiv.org/abs/1609.02907"
    suits = "neighbours agree, or differ in a regular way"

    hidden: int = 32
    """Width of every hidden layer."""
    layers: int = 2
    """Graph convolutions."""
    separate_self: bool = later_option(False)
    """Average neighbours without self-loops, and add x V of the node itself."""

    def build_module(self, graph: Graph) -> nn.Module:
        if self.is_deep:
            return self.deep_module(graph, "last")
        return GCNModule(self, graph)

    @property
    def is_deep(self) -> bool:
        return self.separate_self or super().is_deep

    def deep_module(self, graph: Graph, jump: Jump) -> nn.Module:
        """Residual layers, a jump and a linear layer."""
        loops: SelfLoops = "none" if self.separate_self else "all"
        convs = [GCNAggregate(loops) for _ in range(self.layers)]
        residual = self.residual or self.separate_self
        return self.residual_layers(graph, convs, self.hidden, residual, jump)


class GCNModule(nn.Module):
    """Â dropout(relu(norm(x))) W, layer by layer, plus b."""

    def __init__(self, o: GCN, graph: Graph, out_features: int | None = None) -> None:
        super().__init__()
        out_features = out_features or graph.num_classes
        sizes = layer_sizes(graph.num_features, o.hidden, out_features, o.layers)
        self.first = InputLinear("features", graph, sizes[1], bias=False, init="glorot")
        self.blocks = nn.ModuleList(
            NormActDropLinear(*ends, o.dropout, batch_norm=o.batch_norm, init="glorot")
            for ends in pairwise(sizes[1:])
        )
        self.conv_biases = nn.ModuleList(
            bias_before_norm(width, use=o.conv_bias and o.batch_norm)
            for width in sizes[1:-1]
        )
        self.bias = Bias(sizes[-1])

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        a_hat = GCNNorm.of(batch.adjacency)  # D^-1/2 (A + I) D^-1/2
        x = a_hat @ self.first.defer(batch.features)
        for bias, block in zip(self.conv_biases, self.blocks, strict=True):
            x = a_hat @ block(bias(x))
        return self.bias(x)


@dataclass(frozen=True, kw_only=True)
class GCNJK(GCN):
    """jump(x_1, …, x_L) W + b, where x_l is the output of graph convolution l."""

    paper = "Xu et al. 2018, https://arxiv.org/abs/1806.03536"
    suits = "the node itself, near and far neighbours should count apart"

    jump: Jump = "max"
    """Combine the outputs of all layers: maximum, concatenation, LSTM or sum."""

    def build_module(self, graph: Graph) -> nn.Module:
        if self.is_deep:
            return self.deep_module(graph, self.jump)
        return GCNJKModule(self, graph)


class GCNJKModule(GCNModule):
    """jump(x_1, …, x_L) W + b with x_l = dropout(relu(norm(Â x_{l-1} W_l)))."""

    def __init__(self, o: GCNJK, graph: Graph) -> None:
        super().__init__(o, graph, o.hidden)
        self.jump = JUMPING_KNOWLEDGE[o.jump](o.layers, o.hidden)
        self.final = nn.Linear(self.jump.out_features, graph.num_classes)

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        a_hat = GCNNorm.of(batch.adjacency)
        x, outputs = a_hat @ self.first.defer(batch.features), []
        for bias, block in zip(self.conv_biases, self.blocks, strict=True):
            assert isinstance(block, NormActDropLinear)
            hidden, x = block.with_hidden(bias(x))
            outputs.append(hidden)
            x = a_hat @ x
        return self.final(self.jump([*outputs, self.bias(x)]))
