"""Message passing: networks that map the features, then let them flow along edges."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.adjacency import Adjacency
from unalike.graph import Graph
from unalike.methods.layers.affine import Affine, value
from unalike.methods.layers.entry import Entry
from unalike.methods.layers.normalised import Normalised
from unalike.training.network import First, Network, Table

MOST_FEATURES = 4
"""Features for each hidden number up to which they are propagated themselves."""


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

    def enter_flown(
        self, batch: Graph, first: First, adjacency: Normalised, hops: Sequence[int]
    ) -> Float[Tensor, "nodes hidden"]:
        """The first linear map in blocks of columns, each propagated some times.

        Â (x W + b) is (Â x) W + (Â 1) b, and Â x has nothing to learn: dense features
        that are not many are propagated once, and no epoch does it again.
        """
        hidden = self.entry(batch, first)
        if not isinstance(hidden, Affine) or not self._flow_first(batch):
            return flow_blocks(adjacency, value(hidden), hops)
        weights = self.entry.weight.chunk(len(hops), 1)
        found = [
            adjacency.flown(batch.features.to_dense(), count).to(weight.dtype) @ weight
            for count, weight in zip(hops, weights, strict=True)
        ]
        if self.entry.offset is not None:
            offsets = self.entry.offset.chunk(len(hops))
            ones = hidden.rows.new_ones(batch.num_nodes, 1)
            found = [
                block + adjacency.power(count, ones) * offset
                for block, count, offset in zip(found, hops, offsets, strict=True)
            ]
        return torch.cat(found, 1)

    def _flow_first(self, batch: Graph) -> bool:
        """Are features that nothing drops few enough to flow instead of the hidden?"""
        few = batch.num_features <= MOST_FEATURES * self.entry.weight.shape[1]
        return few and isinstance(self.entry.drop, nn.Identity)


def flow_blocks(
    adjacency: Normalised, x: Float[Tensor, "nodes blocks"], hops: Sequence[int]
) -> Float[Tensor, "nodes blocks"]:
    """Each block of columns, propagated as often as its number says."""
    blocks = x.chunk(len(hops), 1)
    return torch.cat(
        [adjacency.power(count, b) for count, b in zip(hops, blocks, strict=True)], 1
    )
