"""Full: the whole graph is the only batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import torch

from unalike.adjacency import Ids
from unalike.batchings.batching import Batch, Batching, Cut, weight_of_train
from unalike.graph import Graph


@dataclass(frozen=True, kw_only=True)
class Full(Batching):
    """One batch: the graph itself."""

    def drawn(self, graph: Graph, train: Ids, chance: torch.Generator) -> Iterator[Cut]:
        if len(train):
            yield partial(Batch, graph, weight_of_train(graph, train))
