"""Multilayer perceptron, layer sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from torch import nn

from unalike.errors import UserError
from unalike.nn.linear import DeferredLinear, TensorOrDeferred, linear_sum_relu, value
from unalike.nn.norm import NormActDrop, Relu, fold_norm_into_linear

# Bridge: what lies between two layers: batch norm, ReLU and dropout.


class NormActDropLinear(nn.Module):
    """A linear map of what has crossed a bridge; its offset is still to be added."""

    def __init__(self, inputs: int, outputs: int, dropout: float, relu: Relu) -> None:
        super().__init__()
        self.bridge = NormActDrop(nn.BatchNorm1d(inputs), dropout, relu=relu)
        self.linear = nn.Linear(inputs, outputs)
        self.joined = False
        """Is the product left untaken in training too, for others to join it?"""

    def forward(self, x: TensorOrDeferred) -> DeferredLinear:
        before = DeferredLinear.of(x)
        norm, weight, offset = self.bridge.norm, self.linear.weight.T, self.linear.bias
        early = self.bridge.relu == "before"
        if isinstance(norm, nn.BatchNorm1d) and not self.training and early:
            return fold_norm_into_linear(
                linear_sum_relu(None, before), norm, weight, offset
            )
        taken = before.product()
        if self.joined:
            return DeferredLinear(
                self.bridge(taken.rows, offset=taken.offset), weight, offset
            )
        crossed = self.bridge(taken.rows, offset=taken.offset, out_of=weight)
        return DeferredLinear(crossed, None, offset)


# Multilayer perceptrons: linear, ReLU, batch norm, dropout, and again.


class MLP(nn.Sequential):
    """Linear maps one after the other, of which the last is left to be finished."""

    def forward(self, x: TensorOrDeferred) -> TensorOrDeferred:
        for layer in self:
            if isinstance(layer, nn.Linear):
                x = DeferredLinear(value(x), layer.weight.T, layer.bias)
            else:
                x = layer(x)
        return x


def layer_sizes(inputs: int, hidden: int, outputs: int, layers: int) -> list[int]:
    """The widths between the linear maps of a perceptron, ends included."""
    if layers < 1 or hidden < 1:
        raise UserError(f"{layers} layers of width {hidden}: both are at least 1.")
    return [inputs, *[hidden] * (layers - 1), outputs]


def make_mlp(sizes: Sequence[int], dropout: float) -> MLP:
    """A perceptron of `len(sizes) - 1` linear maps."""
    return MLP(nn.Linear(sizes[0], sizes[1]), *_hidden_layers(sizes[1:], dropout))


def mlp_after_first_layer(
    sizes: Sequence[int], dropout: float, *, joined: bool = False
) -> MLP:
    """The same perceptron without its first linear map, which is a table's.

    Where it is to be joined, a further matrix multiplies the last weight, not rows.
    """
    layers = list(_hidden_layers(sizes[1:], dropout))
    if layers:
        layers[-1].joined = joined
    return MLP(*layers)


def _hidden_layers(sizes: Sequence[int], dropout: float) -> Iterator[NormActDropLinear]:
    for before, after in pairwise(sizes):
        yield NormActDropLinear(before, after, dropout, relu="before")
