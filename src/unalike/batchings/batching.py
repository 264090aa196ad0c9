"""Batching: how to cut a graph into pieces to learn from and to score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.adjacency import Ids
from unalike.graph import Graph


@dataclass(frozen=True, eq=False)
class Batch:
    """Some nodes to learn from."""

    graph: Graph
    """An induced or sampled subgraph; its ids are places in the graph it is cut from.
    """
    weight: Float[Tensor, " nodes"]
    """What each node counts for in the loss; 0: not learned from."""


@dataclass(frozen=True, kw_only=True)
class Batching(ABC):
    """How to cut a graph into the batches of an epoch. Its fields are its settings."""

    cuts_anywhere: ClassVar[bool] = False
    """Can it cut a graph that lies on a card? Otherwise batches are carried there."""

    @property
    def mover(self) -> str:
        """How tables move, by a name of `training.tables`."""
        return "adamw"

    @abstractmethod
    def epoch(
        self, graph: Graph, train: Ids, chance: torch.Generator
    ) -> Iterator[Batch]:
        """The batches of one epoch; the same state of `chance`, the same batches."""

    def cover(self, graph: Graph, chance: torch.Generator) -> Iterator[Graph]:
        """Pieces to score: every node is in exactly one of them."""
        yield graph
