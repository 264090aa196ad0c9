"""Options of GCN and GAT for residual connections, norms and linear layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn

from unalike.data.graph import Graph
from unalike.methods.base import MessagePassingMethod
from unalike.nn.jumping_knowledge import Jump
from unalike.nn.residual_layers import LayerNorm, ResidualLayers
from unalike.options import later_option


@dataclass(frozen=True, kw_only=True)
class ResidualOptions(MessagePassingMethod):
    """Graph convolutions that may be followed by a linear layer (Luo et al. 2024)."""

    dropout: float = 0.5
    """Fraction of hidden units dropped in training."""
    batch_norm: bool = True
    """Batch norm between layers; Veličković et al. have none in GAT."""
    conv_bias: bool = later_option(False)
    """Add a bias in front of each batch norm, as the paper's code does."""
    residual: bool = later_option(False)
    """Add x V to every convolution."""
    layer_norm: bool = later_option(False)
    """Layer norm behind every convolution instead of batch norm."""
    linear_before: bool = later_option(False)
    """A linear layer and dropout before the convolutions."""
    linear_after: bool = later_option(False)
    """A linear layer behind the last convolution; the options above imply it."""

    @property
    def is_deep(self) -> bool:
        """Does a linear layer follow the convolutions?"""
        implying = (self.residual, self.layer_norm, self.linear_before)
        return self.linear_after or any(implying)

    def residual_layers(
        self,
        graph: Graph,
        convs: Sequence[nn.Module],
        width: int,
        residual: bool,
        jump: Jump,
    ) -> ResidualLayers:
        """The convolutions with these options, a jump and a linear layer."""
        norm: LayerNorm = "batch" if self.batch_norm else "none"
        return ResidualLayers(
            graph,
            convs,
            width,
            self.dropout,
            norm="layer" if self.layer_norm else norm,
            residual=residual,
            linear_before=self.linear_before,
            jump=jump,
        )
