"""Entry: the first linear map of the features, dense or sparse."""

from __future__ import annotations

from torch import nn

from unalike.adjacency import Adjacency
from unalike.graph import Graph
from unalike.methods.layers.affine import Affine, Hidden
from unalike.methods.layers.dropout import Dropout
from unalike.training.network import First, Table

NAME = "features"


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
        return Affine(rows, self.weight, self.offset)
