"""Summary: what an import found, as numbers for people and for programs."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What was read, what was made of it, and how long it took."""

    folder: str
    nodes: int
    edges: int
    directed: bool
    repeats: int
    """Edges that were there already and merged; undirected, either way round."""
    loops: int
    isolated: int
    """Nodes that no edge touches."""
    dropped: int
    """Edges left out since an end is unknown."""
    features: int
    one_hot_columns: int
    """How many of the features stand for a category."""
    sparse: bool
    """Are the features stored without their zeros?"""
    classes: list[tuple[Hashable, int]]
    """The name of each class and its nodes."""
    unlabelled: int
    splits: list[dict[str, int]]
    """Nodes in each part of each split."""
    bytes: int
    seconds: float
    notes: list[str]
    """What was guessed and should be known."""

    @property
    def edges_per_second(self) -> float:
        """Rows of edges read for each second of the whole import."""
        return (self.edges + self.repeats + self.dropped) / self.seconds

    def about(self) -> dict[str, Any]:
        """The summary as JSON tells it."""
        told = asdict(self)
        told["classes"] = [
            {"name": name, "nodes": count} for name, count in self.classes
        ]
        return {**told, "edges_per_second": self.edges_per_second}
