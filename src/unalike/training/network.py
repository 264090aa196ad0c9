"""Network: tables that multiply the rows of a batch, and what follows them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor, nn

from unalike.features import Features
from unalike.graph import Graph

First = dict[str, Float[Tensor, "nodes hidden"]]
"""The products of the inputs with the tables of the same name."""


class Network(nn.Module, ABC):
    """A network whose first layer is a product of rows and tables.

    The training loop takes these products itself, because it can take them once for
    many purposes and update a large table while it gathers its gradient. What follows
    is an ordinary module.
    """

    row_wise: ClassVar[bool] = True
    """Do scores of a node depend on its own row alone, when not training?"""

    def __init__(self, tables: dict[str, Float[Tensor, "inputs hidden"]]) -> None:
        super().__init__()
        self.tables = nn.ParameterDict(tables)

    @abstractmethod
    def inputs(self, batch: Graph) -> dict[str, Features]:
        """The matrix that multiplies each table."""

    @abstractmethod
    def forward(self, batch: Graph, first: First) -> Float[Tensor, "nodes classes"]:
        """The scores of a batch, from the products of its inputs and the tables."""

    @property
    def mixes_rows(self) -> bool:
        """Do the scores of a row depend on the other rows of its batch in training?"""
        return any(isinstance(part, nn.BatchNorm1d) for part in self.modules())

    def score(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        """The scores of a batch, products included."""
        inputs = self.inputs(batch)
        return self(batch, {name: x @ self.tables[name] for name, x in inputs.items()})
