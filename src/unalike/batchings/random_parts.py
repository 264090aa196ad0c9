"""Random parts: nodes dealt out anew in every epoch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from unalike.adjacency import Ids
from unalike.batchings.checks import at_least_one
from unalike.batchings.dealing import deal
from unalike.batchings.pieces import Pieces
from unalike.graph import Graph


@dataclass(frozen=True, kw_only=True)
class RandomParts(Pieces):
    """Every node falls into one of the parts, all alike; a part is a batch."""

    parts: int = 10
    """Parts of the graph."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least_one(self, "parts")

    def pieces(self, graph: Graph, chance: torch.Generator) -> Iterable[Ids]:
        return deal(graph, self.parts, chance)
