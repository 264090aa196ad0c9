"""Scoring: the pieces in which every node is scored once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from unalike.batchings.batching import induced_graphs
from unalike.batchings.dealing import deal
from unalike.graph import Graph

PARTS = 10
"""Parts in which the paper scores its large graphs."""

Cover = Callable[[Graph, torch.Generator], Iterator[Graph]]


def whole(graph: Graph, chance: torch.Generator) -> Iterator[Graph]:
    """The graph itself: every node sees all its neighbours."""
    yield graph


def random_parts(graph: Graph, chance: torch.Generator) -> Iterator[Graph]:
    """Ten random parts: a node sees about a tenth of its neighbours."""
    yield from induced_graphs(graph, deal(graph, PARTS, chance))


COVERS: dict[str, Cover] = {"graph": whole, "parts": random_parts}
