"""Full: the whole graph is the only batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from unalike.adjacency import Ids
from unalike.batchings.batching import Batch, Batching
from unalike.graph import Graph


@dataclass(frozen=True, kw_only=True)
class Full(Batching):
    """One batch: the graph itself."""

    def epoch(
        self, graph: Graph, train: Ids, chance: torch.Generator
    ) -> Iterator[Batch]:
        weight = torch.zeros(graph.num_nodes, device=graph.labels.device)
        weight[train] = 1
        yield Batch(graph, weight)
