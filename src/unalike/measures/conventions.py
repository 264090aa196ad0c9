"""Which edges count (self-loops, unlabelled, direction), and the paper's choices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

# Convention: which edges a measure counts, and for how much.


@dataclass(frozen=True)
class Convention:
    """What is said about the edges that papers treat in different ways.

    By default self-loops and edges with an unlabelled end are left out and every stored
    edge is read from its source. Nodes without a counted edge are left out of means.
    """

    loops: int = 0
    """What a self-loop counts for, where any other stored edge counts for 1.

    Where edges are read both ways a pair counts for 2; so does a loop with 2.
    """
    unlabelled: bool = False
    """Do the unlabelled nodes count as one more class?"""
    both_ways: bool = False
    """Is a directed edge read from its target as well?"""


STORED = Convention()
UNDIRECTED = Convention(both_ways=True)

# The conventions behind the numbers that the LINKX paper prints.


UNDIRECTED_WITH_UNLABELLED = Convention(both_ways=True, unlabelled=True)
"""The two-hop table: the symmetrised graph, with `unlabelled` as a class."""

H2GCN_PAIRS = Convention(both_ways=True, loops=2)
"""The six older graphs, quoted from H2GCN: undirected pairs, a loop counts as one."""

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
    """What each printed number of a dataset counts; the rest is counted as stored."""
    return {**PAPER_DEFAULT, **PAPER_OVERRIDES.get(dataset, {})}


CONVENTIONS: dict[str, Callable[[str], Convention | Mapping[str, Convention]]] = {
    "stored": lambda _: STORED,
    "both-ways": lambda _: UNDIRECTED,
    "paper": paper_conventions,
}
"""What can be asked for by name, for a dataset."""
