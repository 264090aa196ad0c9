"""Network: tables that meet sparse rows, and what follows them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.adjacency import Adjacency
from unalike.graph import Graph
from unalike.spacious import room

First = dict[str, Float[Tensor, "nodes hidden"]]
"""Products of sparse inputs with the tables of the same name, and their offsets."""

NUMBERS_AT_ONCE = 2**20
"""Numbers that are drawn together where they are not kept."""


@dataclass(frozen=True)
class Table:
    """The size of a first layer's weight: a row per input, and mostly an offset."""

    inputs: int
    width: int
    fan_in: int | None = None
    """Inputs that add up, where another table shares the sum."""
    offset: bool = field(default=True, kw_only=True)
    """Is an offset added to the product?"""
    glorot: bool = field(default=False, kw_only=True)
    """Does the weight begin as that of a graph convolution, not of `nn.Linear`?"""
    held: range | None = field(default=None, kw_only=True)
    """The rows that are kept here, where other processes keep the rest."""

    def draw(self) -> tuple[nn.Parameter, nn.Parameter | None]:
        """Weight and offset like those of `nn.Linear`: within 1 / sqrt(inputs)."""
        bound = 1 / math.sqrt(max(1, self.fan_in or self.inputs))
        weight = (
            glorot(self.inputs, self.width)
            if self.glorot
            else uniform_rows(bound, self.inputs, self.width, self.held)
        )
        return weight, uniform(bound, self.width) if self.offset else None


def glorot(inputs: int, width: int) -> nn.Parameter:
    """A weight within sqrt(6 / (inputs + width)) (Glorot and Bengio 2010)."""
    return uniform(math.sqrt(6 / (inputs + width)), inputs, width)


def uniform(bound: float, *shape: int) -> nn.Parameter:
    """Numbers drawn from between -bound and bound."""
    return nn.Parameter(room(shape).uniform_(-bound, bound))


def uniform_rows(
    bound: float, rows: int, width: int, held: range | None
) -> nn.Parameter:
    """Some rows of what `uniform` would draw; chance goes on as if all were drawn."""
    kept = range(rows) if held is None else held
    _skip(kept.start * width)
    weight = uniform(bound, len(kept), width)
    _skip((rows - kept.stop) * width)
    return weight


def _skip(count: int) -> None:
    """Draw numbers and let them go, a few at a time."""
    for begin in range(0, count, NUMBERS_AT_ONCE):
        torch.empty(min(NUMBERS_AT_ONCE, count - begin)).uniform_()


class Network(nn.Module, ABC):
    """A network whose sparse inputs meet tables, and an ordinary module after that.

    The training loop takes the products of sparse rows and tables itself, because it
    can take them once for many purposes and move a large table while it gathers its
    gradient. Dense inputs are the business of the module.
    """

    row_wise: ClassVar[bool] = True
    """Do scores of a node depend on its own row alone, when not training?"""
    only_tables: bool = False
    """Do they depend on the products of its tables alone, whatever else a batch has?"""

    def __init__(self, tables: dict[str, Table]) -> None:
        super().__init__()
        drawn = {name: table.draw() for name, table in tables.items()}
        self.tables = nn.ParameterDict({name: pair[0] for name, pair in drawn.items()})
        self.offsets = nn.ParameterDict(
            {name: pair[1] for name, pair in drawn.items() if pair[1] is not None}
        )

    def fix(self, **numbers: float | list[float]) -> None:
        """Hold numbers that are told and not learned, of which every run has its own.

        The options tell them again, so that no file of weights holds them.
        """
        for name, told in numbers.items():
            exact = torch.tensor(told, dtype=torch.float64, device="cpu")
            self.register_buffer(name, exact, persistent=False)

    @abstractmethod
    def inputs(self, batch: Graph) -> dict[str, Adjacency]:
        """The sparse matrix that multiplies each table."""

    @abstractmethod
    def forward(self, batch: Graph, first: First) -> Float[Tensor, "nodes classes"]:
        """The scores of a batch, from the products of its sparse inputs."""

    @property
    def mixes_rows(self) -> bool:
        """Do the scores of a row depend on the other rows of its batch in training?"""
        normed = any(isinstance(part, nn.BatchNorm1d) for part in self.modules())
        return normed or not self.row_wise

    def products(self, batch: Graph) -> First:
        """What the first layer makes of the sparse inputs of a batch."""
        first = {
            name: matrix @ self.tables[name]
            for name, matrix in self.inputs(batch).items()
        }
        for name, offset in self.offsets.items():
            first[name] = first[name] + offset
        return first

    def score(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        """The scores of a batch, products included."""
        return self(batch, self.products(batch))
