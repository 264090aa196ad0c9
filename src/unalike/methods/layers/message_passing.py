"""Message passing: networks that map the features, then let them flow along edges."""

from jaxtyping import Float
from torch import Tensor

from unalike.adjacency import Adjacency
from unalike.graph import Graph
from unalike.methods.layers.entry import Entry, value
from unalike.training.network import First, Network, Table


class MessagePassingNetwork(Network):
    """A network whose scores of a node depend on the nodes around it."""

    row_wise = False

    def __init__(
        self, graph: Graph, table: Table, dropout: float | None = None
    ) -> None:
        entry = Entry(graph, table, dropout)
        super().__init__(entry.tables)
        self.entry = entry

    def inputs(self, batch: Graph) -> dict[str, Adjacency]:
        return self.entry.inputs(batch)

    def enter(self, batch: Graph, first: First) -> Float[Tensor, "nodes hidden"]:
        """The first linear map of the features."""
        return value(self.entry(batch, first))
