"""Sampler that partitions the nodes at random in each epoch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from unalike.data.adjacency import Ids
from unalike.data.graph import Graph
from unalike.errors import require_positive
from unalike.samplers.base import PartitionSampler, random_partition


@dataclass(frozen=True, kw_only=True)
class RandomPartSampler(PartitionSampler):
    """Every node is in a uniformly random part in each epoch; a part is a batch."""

    parts: int = 10
    """Parts of the graph."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "parts")

    def partition_batches(
        self, graph: Graph, generator: torch.Generator
    ) -> Iterable[Ids]:
        return random_partition(graph, self.parts, generator)
