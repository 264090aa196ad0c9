"""LINK: logistic regression on who a node is joined to."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from unalike.adjacency import Adjacency
from unalike.graph import Graph
from unalike.methods.directions import Directions, look
from unalike.methods.method import RowWise
from unalike.training.network import First, Network, Table


@dataclass(frozen=True, kw_only=True)
class LINK(RowWise):
    """A row of the adjacency times a weight per neighbour and class."""

    paper = "Zheleva and Getoor 2009, https://doi.org/10.1145/1526709.1526781"

    directions: Directions = "out"
    """Neighbours a node is known by: those it points at, those that point at it, …"""

    def prepare(self, graph: Graph) -> Graph:
        return look(graph, self.directions)

    def network(self, graph: Graph) -> Network:
        return _Network(graph.adjacency, graph.num_classes)


class _Network(Network):
    only_tables = True

    def __init__(self, rows: Adjacency, classes: int) -> None:
        table = Table(rows.num_columns, classes, held=rows.held)
        super().__init__({"edges": table})

    def inputs(self, batch: Graph) -> dict[str, Adjacency]:
        return {"edges": batch.adjacency}

    def forward(self, batch: Graph, first: First) -> Float[Tensor, "nodes classes"]:
        return first["edges"]
