"""GraphSAINT by nodes: the sources of edges drawn at random."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from unalike.adjacency import Ids
from unalike.batchings.checks import at_least_one
from unalike.batchings.draws import entries, sources_of
from unalike.batchings.saint import Saint
from unalike.graph import Graph


@dataclass(frozen=True, kw_only=True)
class SaintNodes(Saint):
    """A node is drawn as often as it points at others; one that never does, never."""

    budget: int = 5000
    """Draws for a batch; a node that is drawn again counts once."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least_one(self, "budget")

    def draw(self, graph: Graph, chance: torch.Generator) -> Ids:
        return sources_of(
            graph.adjacency, entries(graph.adjacency, self.budget, chance)
        )
