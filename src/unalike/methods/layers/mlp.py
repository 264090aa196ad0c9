"""Multilayer perceptrons: linear, ReLU, batch norm, dropout, and again."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from torch import nn

from unalike.errors import UserError
from unalike.methods.layers.affine import Affine, Hidden, value
from unalike.methods.layers.bridge import BridgedLinear


class Perceptron(nn.Sequential):
    """Linear maps one after the other, of which the last is left to be finished."""

    def forward(self, x: Hidden) -> Hidden:
        for layer in self:
            if isinstance(layer, nn.Linear):
                x = Affine(value(x), layer.weight.T, layer.bias)
            else:
                x = layer(x)
        return x


def widths(inputs: int, hidden: int, outputs: int, layers: int) -> list[int]:
    """The widths between the linear maps of a perceptron, ends included."""
    if layers < 1 or hidden < 1:
        raise UserError(f"{layers} layers of width {hidden}: both are at least 1.")
    return [inputs, *[hidden] * (layers - 1), outputs]


def mlp(sizes: Sequence[int], dropout: float) -> Perceptron:
    """A perceptron of `len(sizes) - 1` linear maps."""
    return Perceptron(nn.Linear(sizes[0], sizes[1]), *_further(sizes[1:], dropout))


def after_table(
    sizes: Sequence[int], dropout: float, *, joined: bool = False
) -> Perceptron:
    """The same perceptron without its first linear map, which is a table's.

    Where it is to be joined, a further matrix multiplies the last weight, not rows.
    """
    layers = list(_further(sizes[1:], dropout))
    if layers:
        layers[-1].joined = joined
    return Perceptron(*layers)


def _further(sizes: Sequence[int], dropout: float) -> Iterator[BridgedLinear]:
    for before, after in pairwise(sizes):
        yield BridgedLinear(before, after, dropout, relu="before")
