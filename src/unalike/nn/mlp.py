"""MLP: linear layers with batch norm, ReLU and dropout, and the sizes of its layers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from torch import nn

from unalike.errors import UserError
from unalike.nn.linear import DeferredLinear, TensorOrDeferred, value
from unalike.nn.norm import NormActDropLinear


class MLP(nn.Module):
    """A first layer of any kind, then blocks of ReLU, batch norm, dropout and linear.

    `sizes` begins with the output of the first layer. With `defer_last` the last
    product is left to the layer that follows, which may fold a weight into it.
    """

    def __init__(
        self,
        first: nn.Module,
        sizes: Sequence[int],
        dropout: float = 0.0,
        *,
        defer_last: bool = False,
    ) -> None:
        super().__init__()
        self.first = first
        last = len(sizes) - 2
        self.layers = nn.ModuleList(
            NormActDropLinear(
                *ends, dropout, act="before", defer=defer_last and layer == last
            )
            for layer, ends in enumerate(pairwise(sizes))
        )
        self.defer_last = defer_last

    @classmethod
    def of_sizes(cls, sizes: Sequence[int], dropout: float) -> MLP:
        """An MLP of `len(sizes) - 1` linear layers for a dense input."""
        return cls(nn.Linear(sizes[0], sizes[1]), sizes[1:], dropout)

    def forward(self, x: Any) -> TensorOrDeferred:
        x = self._first(x)
        for layer in self.layers:
            assert isinstance(layer, NormActDropLinear)
            x = layer.defer(x)
        return x if self.defer_last else value(x)

    def _first(self, x: Any) -> DeferredLinear:
        if isinstance(self.first, nn.Linear):
            return DeferredLinear(x, self.first.weight.T, self.first.bias)
        defer = getattr(self.first, "defer", self.first)
        return DeferredLinear.of(defer(x))


def layer_sizes(inputs: int, hidden: int, outputs: int, layers: int) -> list[int]:
    """The sizes of the input, the hidden layers and the output of an MLP."""
    if layers < 1 or hidden < 1:
        raise UserError(f"{layers} layers of width {hidden}: both must be at least 1.")
    return [inputs, *[hidden] * (layers - 1), outputs]
