"""Stock: batches that come again in every epoch, and stay on the device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import torch

from unalike.adjacency import Ids
from unalike.batchings.batching import Batch, Batching, Cut, shuffled
from unalike.graph import Graph
from unalike.memory import free_memory
from unalike.training.carry import size_of

GRAPH_SHARE = 0.1
"""Share of free memory that the batches of a graph may take at first."""
LEAST_SHARE = 0.5
"""Share of it that stays free: methods leave with a batch what they find about it."""


@dataclass(frozen=True, eq=False)
class Stock:
    """Batches that are cut and carried once, as long as memory lasts."""

    cuts: list[Cut]
    device: torch.device
    least: float
    """Bytes that stay free."""
    held: dict[int, Batch] = field(default_factory=dict)

    @classmethod
    def of(
        cls, batching: Batching, graph: Graph, train: Ids, device: torch.device
    ) -> Stock | None:
        """The stock of a batching, where its batches come again and there is room."""
        cuts = batching.standing(graph, train)
        free = free_memory(device)
        if cuts is None or size_of(graph) > GRAPH_SHARE * free:
            return None
        return cls(cuts, device, LEAST_SHARE * free)

    def drawn(self, chance: torch.Generator) -> Iterator[Cut]:
        """The batches of an epoch, in the order in which they would be drawn."""
        places = range(len(self.cuts))
        return shuffled([partial(self.batch, place) for place in places], chance)

    def batch(self, place: int) -> Batch:
        """A batch on the device."""
        if place in self.held:
            return self.held[place]
        batch = self.cuts[place]()
        graph, weight = batch.graph.to(self.device), batch.weight.to(self.device)
        there = replace(batch, graph=graph, weight=weight)
        if free_memory(self.device) > self.least:
            self.held[place] = there
        return there
