"""Multilayer perceptrons: linear, ReLU, batch norm, dropout, and again."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from torch import nn

from unalike.errors import UserError
from unalike.methods.layers.bridge import BridgedLinear


def widths(inputs: int, hidden: int, outputs: int, layers: int) -> list[int]:
    """The widths between the linear maps of a perceptron, ends included."""
    if layers < 1 or hidden < 1:
        raise UserError(f"{layers} layers of width {hidden}: both are at least 1.")
    return [inputs, *[hidden] * (layers - 1), outputs]


def mlp(sizes: Sequence[int], dropout: float) -> nn.Sequential:
    """A perceptron of `len(sizes) - 1` linear maps."""
    return nn.Sequential(nn.Linear(sizes[0], sizes[1]), *_further(sizes[1:], dropout))


def after_table(sizes: Sequence[int], dropout: float) -> nn.Sequential:
    """The same perceptron without its first linear map, which is a table's."""
    return nn.Sequential(*_further(sizes[1:], dropout))


def _further(sizes: Sequence[int], dropout: float) -> Iterator[nn.Module]:
    for before, after in pairwise(sizes):
        yield BridgedLinear(before, after, dropout, relu="before")
