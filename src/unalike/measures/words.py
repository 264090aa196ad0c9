"""Words: what the value of a measure means for a graph."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Any

Found = Mapping[str, Any]

NEAR = 0.02
"""Shares of neighbours that differ by less are called equal."""


def in_words(name: str, found: Found) -> str:
    """One line about a measure, in the light of the others that were found."""
    if math.isnan(found[name]):
        return UNDEFINED.get(name, "not defined for this graph")
    return WORDS[name](found) if name in WORDS else ""


def scale(name: str, first: str, *steps: tuple[float, str]) -> Callable[[Found], str]:
    """Words that change as the value passes each bound."""
    bounds, texts = [bound for bound, _ in steps], [first, *(text for _, text in steps)]
    return lambda found: texts[bisect_right(bounds, found[name])]


def beside(name: str, more: str, equal: str, less: str) -> Callable[[Found], str]:
    """Words that compare a kind of neighbour with the nearest neighbours."""

    def words(found: Found) -> str:
        lead = found[name] - found.get("node_homophily", math.nan)
        texts = {lead > NEAR: more, abs(lead) <= NEAR: equal, lead < -NEAR: less}
        return texts.get(True, f"{found[name]:.0%} of them share a node's label")

    return words


def edges_in_words(found: Found) -> str:
    """Edge homophily beside what classes of equal size give by chance."""
    told = f"{found['edge_homophily']:.0%} of edges join equal labels"
    return f"{told}; even classes give {1 / found['num_classes']:.0%} by chance"


def nodes_in_words(found: Found) -> str:
    """Node homophily as a share."""
    return (
        f"on average {found['node_homophily']:.0%} of neighbours share a node's label"
    )


def averaging_in_words(found: Found) -> str:
    """Aggregation homophily as a share."""
    share = found["aggregation_homophily"]
    return f"after averaging, {share:.0%} of nodes are nearest their class"


def _told(name: str, who: str) -> Callable[[Found], str]:
    return scale(
        name,
        f"{who} label tells nothing about a node's",
        (0.02, f"{who} label tells little about a node's"),
        (0.15, f"{who} label tells much about a node's"),
        (0.5, f"{who} label almost gives a node's away"),
    )


def _chosen(name: str) -> Callable[[Found], str]:
    return scale(
        name,
        "edges avoid their own class",
        (-0.05, "edges are independent of labels"),
        (0.05, "edges slightly favour their own class"),
        (0.3, "edges favour their own class"),
        (0.6, "edges keep to their own class"),
    )


WORDS: dict[str, Callable[[Found], str]] = {
    "edge_homophily": edges_in_words,
    "node_homophily": nodes_in_words,
    "class_homophily": scale(
        "class_homophily",
        "no class keeps to itself more than by chance",
        (0.05, "some classes keep to themselves a little"),
        (0.3, "classes keep to themselves"),
        (0.6, "classes keep strictly to themselves"),
    ),
    "adjusted_homophily": _chosen("adjusted_homophily"),
    "unbiased_homophily": _chosen("unbiased_homophily"),
    "label_informativeness": _told("label_informativeness", "a neighbour's"),
    "node_label_informativeness": _told(
        "node_label_informativeness", "a random neighbour's"
    ),
    "monophily": scale(
        "monophily",
        "neighbours of a node are no more alike than by chance",
        (0.02, "neighbours of a node are somewhat alike"),
        (0.15, "neighbours of a node are alike: look two hops away"),
    ),
    "two_hop_node_homophily": beside(
        "two_hop_node_homophily",
        "two-hop neighbours agree more than neighbours: try LINKX",
        "two-hop neighbours agree as much as neighbours",
        "two-hop neighbours agree less than neighbours",
    ),
    "aggregation_homophily": averaging_in_words,
    "generalised_edge_homophily": scale(
        "generalised_edge_homophily",
        "features of neighbours have little in common",
        (0.1, "features of neighbours are somewhat alike"),
        (0.5, "features of neighbours are alike"),
    ),
    "in_node_homophily": beside(
        "in_node_homophily",
        "in-neighbours agree more: keep the direction of edges",
        "in-neighbours agree as much as out-neighbours",
        "in-neighbours agree less: keep the direction of edges",
    ),
    "shared_target_homophily": beside(
        "shared_target_homophily",
        "nodes with the same targets agree more than neighbours",
        "nodes with the same targets agree as much as neighbours",
        "nodes with the same targets agree less than neighbours",
    ),
    "shared_source_homophily": beside(
        "shared_source_homophily",
        "nodes with the same sources agree more than neighbours",
        "nodes with the same sources agree as much as neighbours",
        "nodes with the same sources agree less than neighbours",
    ),
}

UNDEFINED = {
    "unbiased_homophily": "for undirected graphs only: see --convention both-ways",
    "generalised_edge_homophily": "the nodes have no features",
    "in_node_homophily": "for directed graphs only",
    "shared_target_homophily": "for directed graphs only",
    "shared_source_homophily": "for directed graphs only",
}
