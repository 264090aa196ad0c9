"""Sample: a part of a graph that is small enough to try methods on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from unalike.adjacency import Ids
from unalike.advice.effort import Effort
from unalike.graph import Graph
from unalike.split import Split


@dataclass(frozen=True, eq=False)
class Sample:
    """A graph to try methods on, and which of its nodes to judge them by."""

    graph: Graph
    split: Split
    whole: bool
    """Is it the graph itself?"""


def sample(graph: Graph, split: Split, seed: int, most: Effort) -> Sample:
    """The graph itself, or some nodes with all their neighbours, if it is large.

    Rows of the drawn nodes are whole, those of their neighbours need not be: methods
    are judged by drawn nodes only.
    """
    if graph.num_nodes <= most.nodes and graph.adjacency.num_entries <= most.entries:
        return Sample(graph, split, whole=True)
    chance = torch.Generator().manual_seed(seed)
    known = torch.cat([split.train, split.valid])
    known = known[torch.randperm(len(known), generator=chance)]
    drawn, nodes = surroundings(graph, known, chance, most)
    cut = replace(graph.induced(nodes), parent_ids=None)
    while cut.adjacency.num_entries > most.entries and len(drawn) > 1:
        half = drawn[: len(drawn) // 2]
        drawn, nodes = surroundings(graph, half, chance, most)
        cut = replace(graph.induced(nodes), parent_ids=None)
    train = places(split.train, nodes, graph.num_nodes)
    judges = drawn[torch.isin(drawn, split.valid)]
    valid = places(judges, nodes, graph.num_nodes)
    none = torch.empty(0, dtype=torch.int64)
    return Sample(cut, Split(train, valid, none), whole=False)


def surroundings(
    graph: Graph, known: Ids, chance: torch.Generator, most: Effort
) -> tuple[Ids, Ids]:
    """The first nodes whose neighbours are not too many, and both together."""
    entries = graph.adjacency.degrees[known].cumsum(0)
    fitting = int((entries <= most.entries // 4).sum())
    drawn = known[: max(1, min(fitting, most.nodes // 4))]
    around = graph.adjacency.rows(drawn).columns.long().unique()
    others = around[~torch.isin(around, drawn)]
    spare = torch.randperm(len(others), generator=chance)[: most.nodes - len(drawn)]
    return drawn, torch.cat([drawn, others[spare]]).sort().values


def places(ids: Ids, nodes: Ids, num_nodes: int) -> Ids:
    """Where those of `ids` that are among ascending `nodes` stand there."""
    there = torch.full((num_nodes,), -1)
    there[nodes] = torch.arange(len(nodes))
    return there[ids][there[ids] >= 0]
