"""Pieces: batchings that cut a graph apart, so that each node is in one batch."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch

from unalike.adjacency import Ids
from unalike.batchings.batching import (
    Batching,
    Cut,
    induced_batches,
    induced_graphs,
    weight_of_train,
)
from unalike.batchings.scoring import COVERS, Cover
from unalike.errors import lookup
from unalike.graph import Graph


@dataclass(frozen=True, kw_only=True)
class Pieces(Batching):
    """Each piece is the subgraph its nodes induce; edges between pieces are lost."""

    scoring: Literal["graph", "batches", "parts"] = "graph"
    """Score on the whole graph, on pieces drawn anew, or on ten random parts."""

    def __post_init__(self) -> None:
        lookup(self._covers, self.scoring, "scoring")

    @abstractmethod
    def pieces(self, graph: Graph, chance: torch.Generator) -> Iterable[Ids]:
        """Distinct nodes of each piece; all pieces together hold every node once."""

    def drawn(self, graph: Graph, train: Ids, chance: torch.Generator) -> Iterator[Cut]:
        return self.cuts(graph, train, self.pieces(graph, chance))

    def cuts(self, graph: Graph, train: Ids, pieces: Iterable[Ids]) -> Iterator[Cut]:
        """The batches that pieces are, where there is something to learn."""
        return induced_batches(graph, pieces, weight_of_train(graph, train))

    def cover(self, graph: Graph, chance: torch.Generator) -> Iterator[Graph]:
        yield from self._covers[self.scoring](graph, chance)

    @property
    def _covers(self) -> dict[str, Cover]:
        return COVERS | {"batches": self._own}

    def _own(self, graph: Graph, chance: torch.Generator) -> Iterator[Graph]:
        yield from induced_graphs(graph, self.pieces(graph, chance))
