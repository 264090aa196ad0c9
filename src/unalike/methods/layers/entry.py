"""Entry: the first linear map of the features, dense or sparse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.adjacency import Adjacency
from unalike.graph import Graph
from unalike.methods.layers.dropout import Dropout
from unalike.training.network import First, Table

NAME = "features"


@dataclass(frozen=True, eq=False)
class Affine:
    """Rows times a weight, plus an offset: a product that is not yet taken."""

    rows: Float[Tensor, "nodes inputs"]
    weight: Float[Tensor, "inputs hidden"]
    offset: Float[Tensor, " hidden"]

    def value(self) -> Float[Tensor, "nodes hidden"]:
        return torch.addmm(self.offset, self.rows, self.weight)

    def times(self, further: Float[Tensor, "hidden wider"]) -> Affine:
        """The product with a further matrix, taken between the small ones."""
        return Affine(self.rows, self.weight @ further, self.offset @ further)


Hidden: TypeAlias = Affine | Float[Tensor, "nodes hidden"]


def value(hidden: Hidden) -> Float[Tensor, "nodes hidden"]:
    """The numbers, whether or not their product was taken."""
    return hidden.value() if isinstance(hidden, Affine) else hidden


class Entry(nn.Module):
    """A table of the network for sparse features, its own weight for dense ones.

    Only dense features can be dropped: the loop takes the product of sparse ones.
    """

    offset: nn.Parameter | None

    def __init__(
        self, graph: Graph, table: Table, dropout: float | None = None
    ) -> None:
        super().__init__()
        self.sparse = isinstance(graph.features, Adjacency)
        if not self.sparse:
            self.weight, offset = table.draw()
            self.register_parameter("offset", offset)
            self.drop = nn.Identity() if dropout is None else Dropout(dropout)
        self.tables = {NAME: table} if self.sparse else {}

    def inputs(self, batch: Graph) -> dict[str, Adjacency]:
        """The sparse features, for the table of the network."""
        features = batch.features
        return {NAME: features} if isinstance(features, Adjacency) else {}

    def forward(self, batch: Graph, first: First) -> Hidden:
        if self.sparse:
            return first[NAME]
        rows = self.drop(batch.features.to_dense().to(self.weight.dtype))
        none = self.weight.new_zeros(self.weight.shape[1])
        return Affine(rows, self.weight, none if self.offset is None else self.offset)
