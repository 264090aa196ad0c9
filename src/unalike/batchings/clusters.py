"""Clusters: parts with few edges between them, some at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch

from unalike.adjacency import Ids
from unalike.batchings.batching import Cut, shuffled
from unalike.batchings.checks import at_least_one
from unalike.batchings.dealing import members
from unalike.batchings.partition import partition
from unalike.batchings.pieces import Pieces
from unalike.graph import Graph


@dataclass(frozen=True, kw_only=True)
class Clusters(Pieces):
    """A batch is a group of clusters with the edges between them.

    The clusters are those of METIS and stay; each epoch groups them anew (Cluster-GCN,
    Chiang et al. 2019, https://arxiv.org/abs/1905.07953). One at a time, they are the
    same batches in every epoch.
    """

    parts: int = 200
    """Clusters of the graph."""
    at_once: int = 1
    """Clusters in a batch."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least_one(self, "parts", "at_once")

    def drawn(self, graph: Graph, train: Ids, chance: torch.Generator) -> Iterator[Cut]:
        cuts = self.standing(graph, train)
        if cuts is None:
            return super().drawn(graph, train, chance)
        return shuffled(cuts, chance)

    def standing(self, graph: Graph, train: Ids) -> list[Cut] | None:
        if self.at_once > 1:
            return None
        return list(self.cuts(graph, train, self.clusters(graph)))

    def pieces(self, graph: Graph, chance: torch.Generator) -> Iterable[Ids]:
        clusters = self.clusters(graph)
        order = torch.randperm(self.parts, generator=chance)
        for group in order.split(self.at_once):
            yield torch.cat([clusters[part] for part in group]).sort().values

    def clusters(self, graph: Graph) -> tuple[Ids, ...]:
        """The nodes of each cluster, in ascending order."""
        part_of_node = partition(graph.adjacency, self.parts)
        return members(part_of_node.to(graph.labels.device), self.parts)
