"""Conventions of measures: self-loops, unlabelled nodes and edge direction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Convention:
    """Which edges a measure counts, and with which weight.

    By default self-loops and edges of unlabelled nodes are excluded and every stored
    edge counts once, from source to target. Nodes without a valid edge are excluded
    from means.
    """

    loops: int = 0
    """The weight of a self-loop; other stored edges have the weight 1.

    In an undirected graph a pair of nodes has two stored edges, so 2 makes a self-loop
    count as much as a pair.
    """
    unlabelled: bool = False
    """Treat unlabelled nodes as one more class."""
    both_ways: bool = False
    """Make the graph undirected."""


STORED = Convention()
UNDIRECTED = Convention(both_ways=True)

UNDIRECTED_WITH_UNLABELLED = Convention(both_ways=True, unlabelled=True)
"""Of the two-hop table of the LINKX paper: unlabelled nodes are a class."""

H2GCN_PAIRS = Convention(both_ways=True, loops=2)
"""Of the six small graphs, quoted from H2GCN: a self-loop counts as one pair."""

PAPER_DEFAULT: Mapping[str, Convention] = {
    "node_homophily": UNDIRECTED_WITH_UNLABELLED,
    "two_hop_node_homophily": UNDIRECTED_WITH_UNLABELLED,
}

PAPER_OVERRIDES: Mapping[str, Mapping[str, Convention]] = {
    "chameleon": {"edge_homophily": H2GCN_PAIRS, "num_edges": Convention(loops=1)},
    "cornell": {"edge_homophily": H2GCN_PAIRS},
    "actor": {"edge_homophily": H2GCN_PAIRS},
    "squirrel": {"edge_homophily": H2GCN_PAIRS},
    "texas": {"edge_homophily": H2GCN_PAIRS},
    "wisconsin": {"edge_homophily": H2GCN_PAIRS},
    "penn94": {"edge_homophily": Convention(unlabelled=True)},
}


def paper_conventions(dataset: str) -> dict[str, Convention]:
    """The convention of each published measure of a dataset, if it is not `STORED`."""
    return {**PAPER_DEFAULT, **PAPER_OVERRIDES.get(dataset, {})}


CONVENTIONS: dict[str, Callable[[str], Convention | Mapping[str, Convention]]] = {
    "stored": lambda _: STORED,
    "both-ways": lambda _: UNDIRECTED,
    "paper": paper_conventions,
}
"""Conventions by name, as functions of the name of a dataset."""
