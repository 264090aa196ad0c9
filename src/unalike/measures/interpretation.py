"""Result table and one sentence of meaning per value."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Any

from unalike.display import MAX_CLASSES_SHOWN, Displayable, TextTable
from unalike.measures.registry import MEASURES

# Words: what the value of a measure means for a graph.


Found = Mapping[str, Any]

TOLERANCE = 0.02
"""Shares of neighbours that differ by less are called equal."""


def interpret(name: str, found: Found) -> str:
    """One line about a measure, in the light of the others that were found."""
    if math.isnan(found[name]):
        return UNDEFINED.get(name, "not defined for this graph")
    return INTERPRETATIONS[name](found) if name in INTERPRETATIONS else ""


def by_threshold(
    name: str, first: str, *steps: tuple[float, str]
) -> Callable[[Found], str]:
    """Words that change as the value passes each bound."""
    bounds, texts = [bound for bound, _ in steps], [first, *(text for _, text in steps)]
    return lambda found: texts[bisect_right(bounds, found[name])]


def compared_with_one_hop(
    name: str, more: str, equal: str, less: str
) -> Callable[[Found], str]:
    """Words that compare a kind of neighbour with the nearest neighbours."""

    def words(found: Found) -> str:
        lead = found[name] - found.get("node_homophily", math.nan)
        texts = {
            lead > TOLERANCE: more,
            abs(lead) <= TOLERANCE: equal,
            lead < -TOLERANCE: less,
        }
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


def _informativeness(name: str, who: str) -> Callable[[Found], str]:
    return by_threshold(
        name,
        f"{who} label tells nothing about a node's",
        (0.02, f"{who} label tells little about a node's"),
        (0.15, f"{who} label tells much about a node's"),
        (0.5, f"{who} label almost gives a node's away"),
    )


def _homophily_scale(name: str) -> Callable[[Found], str]:
    return by_threshold(
        name,
        "edges avoid their own class",
        (-0.05, "edges are independent of labels"),
        (0.05, "edges slightly favour their own class"),
        (0.3, "edges favour their own class"),
        (0.6, "edges keep to their own class"),
    )


INTERPRETATIONS: dict[str, Callable[[Found], str]] = {
    "edge_homophily": edges_in_words,
    "node_homophily": nodes_in_words,
    "class_homophily": by_threshold(
        "class_homophily",
        "no class keeps to itself more than by chance",
        (0.05, "some classes keep to themselves a little"),
        (0.3, "classes keep to themselves"),
        (0.6, "classes keep strictly to themselves"),
    ),
    "adjusted_homophily": _homophily_scale("adjusted_homophily"),
    "unbiased_homophily": _homophily_scale("unbiased_homophily"),
    "label_informativeness": _informativeness("label_informativeness", "a neighbour's"),
    "node_label_informativeness": _informativeness(
        "node_label_informativeness", "a random neighbour's"
    ),
    "monophily": by_threshold(
        "monophily",
        "neighbours of a node are no more alike than by chance",
        (0.02, "neighbours of a node are somewhat alike"),
        (0.15, "neighbours of a node are alike: look two hops away"),
    ),
    "two_hop_node_homophily": compared_with_one_hop(
        "two_hop_node_homophily",
        "two-hop neighbours agree more than neighbours: try LINKX",
        "two-hop neighbours agree as much as neighbours",
        "two-hop neighbours agree less than neighbours",
    ),
    "aggregation_homophily": averaging_in_words,
    "generalised_edge_homophily": by_threshold(
        "generalised_edge_homophily",
        "features of neighbours have little in common",
        (0.1, "features of neighbours are somewhat alike"),
        (0.5, "features of neighbours are alike"),
    ),
    "in_node_homophily": compared_with_one_hop(
        "in_node_homophily",
        "in-neighbours agree more: keep the direction of edges",
        "in-neighbours agree as much as out-neighbours",
        "in-neighbours agree less: keep the direction of edges",
    ),
    "shared_target_homophily": compared_with_one_hop(
        "shared_target_homophily",
        "nodes with the same targets agree more than neighbours",
        "nodes with the same targets agree as much as neighbours",
        "nodes with the same targets agree less than neighbours",
    ),
    "shared_source_homophily": compared_with_one_hop(
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

# Found: what was measured of a graph, by name, and how that is shown.


class MeasureResult(dict[str, Any], Displayable):
    """A dictionary of counts and measures."""

    def summary(self) -> TextTable:
        rows = [
            [display_name(name), format_value(name, self), interpret(name, self)]
            for name in scalar_names(self)
        ]
        matrix = self.get("compatibility", [])
        below = (
            [compatibility_sheet(matrix)]
            if 0 < len(matrix) <= MAX_CLASSES_SHOWN
            else []
        )
        heads = ["measure", "value", "meaning"]
        return TextTable.from_rows(headline("Measures", self), heads, rows, below=below)


def compatibility_sheet(matrix: list[list[float]]) -> TextTable:
    """Where the edges of each class end: from the class of the row to the column's."""
    classes = list(map(str, range(len(matrix))))
    rows = [
        [name, *(format_number(share, ".3f") for share in row)]
        for name, row in zip(classes, matrix, strict=True)
    ]
    return TextTable.from_rows("Compatibility", ["from \\ to", *classes], rows)


def headline(name: str, found: Mapping[str, Any]) -> str:
    """The size of a graph in one line."""
    kind = "directed" if found["directed"] else "undirected"
    told = (
        f"{name}: {found['num_nodes']:,} nodes, {found['num_edges']:,} {kind} edges, "
        f"{found['num_features']:,} features, {found['num_classes']} classes"
    )
    rest = {"self-loop": found["num_loops"], "unlabelled node": found["num_unlabelled"]}
    return told + "".join(
        f", {count:,} {what}{'s' if count > 1 else ''}"
        for what, count in rest.items()
        if count
    )


def display_name(name: str) -> str:
    """A measure as tables call it."""
    return name.replace("_", " ")


def scalar_names(found: Mapping[str, Any]) -> list[str]:
    """The measures that were found, but for matrices."""
    return [name for name in MEASURES if isinstance(found.get(name), float)]


def format_value(name: str, found: Mapping[str, Any]) -> str:
    """A value with its interval or its standard error."""
    told = format_number(found[name], ".3f")
    if name in (intervals := found.get("intervals", {})):
        low, high = intervals[name]
        return told if math.isnan(low) else f"{told} [{low:.3f}, {high:.3f}]"
    error = found.get(f"{name}_standard_error")
    return f"{told} ± {error:.3f}" if error else told


def format_number(number: float | None, form: str) -> str:
    """A number, or a dash where there is none."""
    return "–" if number is None or math.isnan(number) else format(number, form)
