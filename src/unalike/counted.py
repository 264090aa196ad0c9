"""Counted: how much there is of a graph, and how that is shown."""

from __future__ import annotations

from functools import cached_property

from torch import Tensor

from unalike.adjacency import Adjacency
from unalike.display import SMALL, Displayed, Sheet
from unalike.features import Features

QUICK = 50_000_000
"""Of a graph with more entries the loops are not counted only to be shown."""


class Counted(Displayed):
    """The counts of a graph."""

    adjacency: Adjacency
    features: Features
    labels: Tensor
    num_classes: int
    directed: bool

    @property
    def num_nodes(self) -> int:
        return len(self.labels)

    @property
    def num_features(self) -> int:
        return self.features.shape[1]

    @cached_property
    def num_loops(self) -> int:
        """Nodes that point at themselves."""
        return int(self.adjacency.weight_of_loops.count_nonzero())

    @property
    def num_edges(self) -> int:
        """Edges as people count them: an undirected one counts once."""
        stored = self.adjacency.num_entries
        return stored if self.directed else (stored + self.num_loops) // 2

    def __repr__(self) -> str:
        parts = ", ".join(f"{count} {what}" for what, count in self._counts().items())
        return f"Graph({parts})"

    def sheet(self) -> Sheet:
        counts = self._counts()
        sizes = [] if self.num_classes > SMALL else [self._class_sizes()]
        return Sheet("Graph", [*counts], [[*counts.values()]], below=sizes)

    def _counts(self) -> dict[str, str]:
        stored = self.adjacency.num_entries
        kind = "directed edges" if self.directed else "undirected edges"
        edges = (kind, self.num_edges) if stored <= QUICK else ("entries", stored)
        counts = {
            "nodes": self.num_nodes,
            edges[0]: edges[1],
            "features": self.num_features,
            "classes": self.num_classes,
        }
        return {what: f"{count:,}" for what, count in counts.items()}

    def _class_sizes(self) -> Sheet:
        sizes = (self.labels + 1).bincount(minlength=self.num_classes + 1).tolist()
        names = [*map(str, range(self.num_classes)), "unlabelled"]
        told = [f"{size:,}" for size in (*sizes[1:], sizes[0])]
        return Sheet("", ["class", *names], [["nodes", *told]])
