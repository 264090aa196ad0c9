"""GraphSAINT by walks: all nodes on short random walks."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from unalike.adjacency import Ids
from unalike.batchings.checks import at_least_one
from unalike.batchings.draws import step, uniform
from unalike.batchings.saint import Saint
from unalike.graph import Graph


@dataclass(frozen=True, kw_only=True)
class SaintWalks(Saint):
    """Walks start at any node alike and follow edges; where none leaves, they stay."""

    roots: int = 5000
    """Walks for a batch; two may start at one node."""
    length: int = 2
    """Steps of a walk; the paper takes as many as the network has layers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least_one(self, "roots", "length")

    def draw(self, graph: Graph, chance: torch.Generator) -> Ids:
        roots = uniform(graph.num_nodes, self.roots, chance)
        visited = [roots.to(graph.labels.device)]
        for _ in range(self.length):
            visited.append(step(graph.adjacency, visited[-1], chance))
        return torch.cat(visited)
