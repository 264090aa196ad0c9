"""GraphSAINT by edges: both ends of edges, those of low degree more often."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from unalike.adjacency import Adjacency, Ids
from unalike.batchings.checks import at_least_one
from unalike.batchings.draws import require_edges, step, uniform
from unalike.batchings.saint import Saint
from unalike.graph import Graph


@dataclass(frozen=True, kw_only=True)
class SaintEdges(Saint):
    """An edge from u to v is drawn in proportion to 1 / deg u + 1 / deg v.

    These are the edges that leave u and those that enter v. Any edge of a random node
    is drawn in proportion to 1 / deg, so no table of all edges is needed.
    """

    budget: int = 5000
    """Edges drawn for a batch; one that is drawn again counts once."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least_one(self, "budget")

    def draw(self, graph: Graph, chance: torch.Generator) -> Ids:
        require_edges(graph.adjacency)
        leaving, entering = graph.adjacency, graph.adjacency.transposed
        sources, targets = _with_edges(leaving), _with_edges(entering)
        ends = uniform(len(sources) + len(targets), self.budget, chance)
        ends = ends.to(sources.device)
        first = sources[ends[ends < len(sources)]]
        last = targets[ends[ends >= len(sources)] - len(sources)]
        others = (step(leaving, first, chance), step(entering, last, chance))
        return torch.cat([first, last, *others])


def _with_edges(rows: Adjacency) -> Ids:
    return rows.degrees.nonzero()[:, 0]
