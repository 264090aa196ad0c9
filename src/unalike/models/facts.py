"""Facts: what a model remembers of the graph that it learned from."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from unalike.adjacency import Adjacency
from unalike.errors import UserError
from unalike.features import Features
from unalike.graph import Graph

SAMPLED = 1 << 20
"""Entries of an adjacency that its fingerprint looks at."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The shape of a graph, and how its nodes are to be told from another's."""

    name: str
    num_known: int
    """Nodes that can be neighbours: the columns of the adjacency."""
    num_features: int
    sparse: bool
    """Are its features sparse?"""
    num_classes: int
    directed: bool
    fingerprint: str
    """A digest of its degrees and of some entries."""
    row_normalised: bool = False
    """Were the features of each node divided by their sum?"""

    @classmethod
    def of(cls, graph: Graph, name: str = "", *, row_normalised: bool = False) -> Facts:
        """The facts of a graph that is about to be learned from."""
        return cls(
            name=name,
            num_known=graph.adjacency.width,
            num_features=graph.num_features,
            sparse=isinstance(graph.features, Adjacency),
            num_classes=graph.num_classes,
            directed=graph.directed,
            fingerprint=fingerprint(graph.adjacency),
            row_normalised=row_normalised,
        )

    def around(self, rows: Adjacency, features: Features) -> Graph:
        """A graph of some rows, all of them without a label."""
        return Graph.build(
            rows,
            features=features,
            num_classes=self.num_classes,
            directed=self.directed,
        )

    def check(self, graph: Graph) -> None:
        """Refuse a graph whose nodes are not those that the model knows."""
        told = (graph.adjacency.width, graph.num_features)
        if told != (self.num_known, self.num_features):
            raise UserError(
                f"The model knows {self.num_known:,} nodes with {self.num_features:,} "
                f"features; this graph has {told[0]:,} with {told[1]:,}."
            )
        if fingerprint(graph.adjacency) != self.fingerprint:
            of = f" '{self.name}'" if self.name else ""
            raise UserError(
                f"The model is of another graph{of}: as many nodes, but other edges."
            )


def fingerprint(adjacency: Adjacency) -> str:
    """A digest of all degrees and of evenly spread entries."""
    step = max(1, adjacency.num_entries // SAMPLED)
    digest = sha256(adjacency.degrees.cpu().numpy().astype(np.int64).tobytes())
    digest.update(adjacency.columns[::step].cpu().numpy().astype(np.int64).tobytes())
    return digest.hexdigest()
