"""GraphSAINT: batches are subgraphs induced by nodes that a sampler draws."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch

from unalike.adjacency import Ids
from unalike.batchings.batching import (
    Batching,
    Cut,
    induced_batches,
    weight_of_train,
)
from unalike.batchings.checks import at_least_one
from unalike.batchings.inclusion import Inclusion, inclusion_of
from unalike.batchings.scoring import COVERS
from unalike.errors import lookup
from unalike.graph import Graph


@dataclass(frozen=True, kw_only=True)
class Saint(Batching):
    """Some subgraphs in every epoch, each drawn by itself.

    Zeng et al. 2020, https://arxiv.org/abs/1907.04931.
    """

    steps: int = 5
    """Batches in an epoch."""
    normalised: bool = False
    """Make up for nodes and edges that are drawn more often than others."""
    scoring: Literal["graph", "parts"] = "graph"
    """Score on the whole graph, or on ten random parts."""

    def __post_init__(self) -> None:
        lookup(COVERS, self.scoring, "scoring")
        at_least_one(self, "steps")

    @abstractmethod
    def draw(self, graph: Graph, chance: torch.Generator) -> Ids:
        """The nodes of one subgraph, with repeats."""

    def drawn(self, graph: Graph, train: Ids, chance: torch.Generator) -> Iterator[Cut]:
        weight = weight_of_train(graph, train)
        if self.normalised:
            seen = self._inclusion(graph)
            graph, weight = seen.weigh(graph), weight * seen.loss_weight
        samples = (self._sample(graph, chance) for _ in range(self.steps))
        yield from induced_batches(graph, samples, weight)

    def cover(self, graph: Graph, chance: torch.Generator) -> Iterator[Graph]:
        yield from COVERS[self.scoring](graph, chance)

    def _sample(self, graph: Graph, chance: torch.Generator) -> Ids:
        return self.draw(graph, chance).unique()

    def _inclusion(self, graph: Graph) -> Inclusion:
        return inclusion_of(graph, self, self._sample)
