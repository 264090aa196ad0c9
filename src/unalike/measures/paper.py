"""The conventions behind the numbers that the LINKX paper prints."""

from collections.abc import Callable, Mapping

from unalike.measures.convention import BOTH_WAYS, STORED, Convention

WHOLE = Convention(both_ways=True, unlabelled=True)
"""The two-hop table: the symmetrised graph, with `unlabelled` as a class."""

PAIRS = Convention(both_ways=True, loops=2)
"""The six older graphs, quoted from H2GCN: undirected pairs, a loop counts as one."""

USUAL: Mapping[str, Convention] = {
    "node_homophily": WHOLE,
    "two_hop_node_homophily": WHOLE,
}

SPECIAL: Mapping[str, Mapping[str, Convention]] = {
    "chameleon": {"edge_homophily": PAIRS, "num_edges": Convention(loops=1)},
    "cornell": {"edge_homophily": PAIRS},
    "actor": {"edge_homophily": PAIRS},
    "squirrel": {"edge_homophily": PAIRS},
    "texas": {"edge_homophily": PAIRS},
    "wisconsin": {"edge_homophily": PAIRS},
    "penn94": {"edge_homophily": Convention(unlabelled=True)},
}


def paper_conventions(dataset: str) -> dict[str, Convention]:
    """What each printed number of a dataset counts; the rest is counted as stored."""
    return {**USUAL, **SPECIAL.get(dataset, {})}


CONVENTIONS: dict[str, Callable[[str], Convention | Mapping[str, Convention]]] = {
    "stored": lambda _: STORED,
    "both-ways": lambda _: BOTH_WAYS,
    "paper": paper_conventions,
}
"""What can be asked for by name, for a dataset."""
