"""LINK: logistic regression on who a node is joined to."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Graph
from unalike.methods.base import Directions, RowWiseMethod, with_directions
from unalike.nn.module import SparseInputModule, SparseProducts, SparseWeightSpec


@dataclass(frozen=True, kw_only=True)
class LINK(RowWiseMethod):
    """A row of the adjacency times a weight per neighbour and class."""

    paper = "Zheleva and Getoor 2009, https://doi.org/10.1145/1526709.1526781"

    directions: Directions = "out"
    """Neighbours a node is known by: those it points at, those that point at it, …"""

    def prepare(self, graph: Graph) -> Graph:
        return with_directions(graph, self.directions)

    def network(self, graph: Graph) -> SparseInputModule:
        return LINKModule(graph.adjacency, graph.num_classes)


class LINKModule(SparseInputModule):
    only_tables = True

    def __init__(self, rows: Adjacency, classes: int) -> None:
        table = SparseWeightSpec(rows.num_cols_global, classes, held=rows.local_cols)
        super().__init__({"edges": table})

    def inputs(self, batch: Graph) -> dict[str, Adjacency]:
        return {"edges": batch.adjacency}

    def forward(
        self, batch: Graph, first: SparseProducts
    ) -> Float[Tensor, "nodes classes"]:
        return first["edges"]
