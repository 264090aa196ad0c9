"""Graph convolutions with residual connections, batch or layer norm, and jumps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Graph
from unalike.nn.init import glorot_uniform
from unalike.nn.jumping_knowledge import JUMPING_KNOWLEDGE, Jump
from unalike.nn.linear import Dropout
from unalike.nn.norm import Bias, NormActDrop
from unalike.nn.normalized_adjacency import GCNNorm, SelfLoops, neighbour_mean
from unalike.nn.sparse_linear import InputLinear

LayerNorm = Literal["batch", "layer", "none"]
"""The norm behind every convolution."""


class GCNAggregate(nn.Module):
    """Â x."""

    def __init__(self, self_loops: SelfLoops = "all") -> None:
        super().__init__()
        self.self_loops: SelfLoops = self_loops

    def forward(
        self, adjacency: Adjacency, x: Float[Tensor, "nodes width"]
    ) -> Float[Tensor, "nodes width"]:
        return GCNNorm.of(adjacency, self_loops=self.self_loops) @ x


class MeanAggregate(GCNAggregate):
    """The mean of x over neighbours."""

    def forward(
        self, adjacency: Adjacency, x: Float[Tensor, "nodes width"]
    ) -> Float[Tensor, "nodes width"]:
        return neighbour_mean(adjacency, x, self.self_loops)


class ResidualLayers(nn.Module):
    """x = dropout(relu(norm(conv(x W) + x V))) in each layer; then jump(x) U + b.

    `residual` adds x V. With `linear_before` the features pass a linear layer and
    dropout first (Luo et al. 2024).
    """

    def __init__(
        self,
        graph: Graph,
        convs: Sequence[nn.Module],
        width: int,
        dropout: float,
        *,
        norm: LayerNorm,
        residual: bool,
        linear_before: bool,
        jump: Jump = "last",
    ) -> None:
        super().__init__()
        self.before = InputLinear("features", graph, width) if linear_before else None
        inputs = [None, *[width] * (len(convs) - 1)]
        if linear_before:
            inputs[0] = width
        bias = norm != "batch"
        self.linears = nn.ModuleList(
            InputLinear("features", graph, width, bias=False, init="glorot")
            if size is None
            else glorot_linear(size, width)
            for size in inputs
        )
        self.convs = nn.ModuleList(convs)
        self.skips = nn.ModuleList(
            InputLinear("features", graph, width, bias=bias)
            if size is None
            else nn.Linear(size, width, bias=bias)
            for size in inputs * residual
        )
        self.biases = nn.ModuleList(
            nn.Identity() if residual or not bias else Bias(width) for _ in convs
        )
        self.blocks = nn.ModuleList(
            NormActDrop(NORMS[norm](width), dropout) for _ in convs
        )
        self.dropout = Dropout(dropout)
        self.jump = JUMPING_KNOWLEDGE[jump](len(convs), width)
        self.final = nn.Linear(self.jump.out_features, graph.num_classes)

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        x = batch.features
        if self.before is not None:
            x = self.dropout(self.before(x))
        outputs = []
        for layer, conv in enumerate(self.convs):
            z = conv(batch.adjacency, self.linears[layer](x))
            if self.skips:
                z = z + self.skips[layer](x)
            x = self.blocks[layer](self.biases[layer](z))
            outputs.append(x)
        return self.final(self.jump(outputs))


NORMS: dict[LayerNorm, type[nn.Module]] = {
    "batch": nn.BatchNorm1d,
    "layer": nn.LayerNorm,
    "none": nn.Identity,
}


def glorot_linear(in_features: int, out_features: int) -> nn.Linear:
    """A linear layer without bias, with the initial weights of a graph convolution."""
    linear = nn.Linear(in_features, out_features, bias=False)
    linear.weight = nn.Parameter(glorot_uniform(out_features, in_features).detach())
    return linear
