"""GraphSAGE: the mean of the neighbours and the node itself, each with its weight."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from unalike.data.graph import Graph
from unalike.methods.base import MessagePassingMethod
from unalike.nn.jumping_knowledge import Jump
from unalike.nn.normalized_adjacency import SelfLoops
from unalike.nn.residual_layers import LayerNorm, MeanAggregate, ResidualLayers


@dataclass(frozen=True, kw_only=True)
class SAGE(MessagePassingMethod):
    """x = relu(norm(mean_j(x_j) W + x V)) over neighbours j; then a linear layer."""

    paper = "Hamilton et al. 2017, https://arxiv.org/abs/1706.02216"
    suits = "the features of a node should count apart from the mean of its neighbours"

    hidden: int = 64
    """Width of every hidden layer."""
    layers: int = 2
    """Graph convolutions."""
    dropout: float = 0.5
    """Fraction of hidden units dropped in training."""
    norm: LayerNorm = "batch"
    """Batch norm, layer norm or none behind every convolution."""
    linear_before: bool = False
    """A linear layer and dropout before the convolutions."""
    loops: SelfLoops = "kept"
    """Self-loops of the mean; Luo et al. 2024 add one to every node."""
    jump: Jump = "last"
    """Outputs that the last linear layer reads: the last, or all of them combined."""

    def build_module(self, graph: Graph) -> nn.Module:
        return ResidualLayers(
            graph,
            [MeanAggregate(self.loops) for _ in range(self.layers)],
            self.hidden,
            self.dropout,
            norm=self.norm,
            residual=True,
            linear_before=self.linear_before,
            jump=self.jump,
        )
