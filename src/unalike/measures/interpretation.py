"""Table of measured values with one sentence of interpretation each."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Any

from unalike.display import MAX_CLASSES_SHOWN, Displayable, TextTable
from unalike.measures.registry import MEASURES

Measures = Mapping[str, Any]
"""Counts and measures of a graph by name."""
Interpretation = Callable[[float, Measures], str]
"""A text about a value, given all measures."""

TOLERANCE = 0.02
"""Fractions of neighbours that differ by at most this are called equal."""
MANY_DUPLICATES = 0.25
"""Fraction of test nodes with a duplicate in train from which scores mislead."""
AGREEING_DUPLICATES = 0.9
"""Label agreement of duplicates from which a label can be looked up."""


class MeasureResult(dict[str, Any], Displayable):
    """Counts and measures of a graph by name, displayed as a table."""

    def summary(self) -> TextTable:
        rows = [
            [display_name(name), format_value(name, self), interpret(name, self)]
            for name in scalar_names(self)
        ]
        matrix = self.get("compatibility", [])
        is_small = 0 < len(matrix) <= MAX_CLASSES_SHOWN
        below = [compatibility_table(matrix)] if is_small else []
        columns = ["measure", "value", "meaning"]
        return TextTable.from_rows(
            headline("Measures", self), columns, rows, below=below
        )


def compatibility_table(matrix: list[list[float]]) -> TextTable:
    """The compatibility matrix: edges from the class of the row to the column's."""
    classes = list(map(str, range(len(matrix))))
    rows = [
        [name, *(format_number(share, ".3f") for share in row)]
        for name, row in zip(classes, matrix, strict=True)
    ]
    return TextTable.from_rows("Compatibility", ["from \\ to", *classes], rows)


def headline(name: str, measures: Measures) -> str:
    """The counts of a graph in one line."""
    direction = "directed" if measures["directed"] else "undirected"
    text = (
        f"{name}: {measures['num_nodes']:,} nodes, "
        f"{measures['num_edges']:,} {direction} edges, "
    )
    if "num_features" in measures:
        text += f"{measures['num_features']:,} features, "
    text += f"{measures['num_classes']} classes"
    optional = {
        "self-loop": measures["num_loops"],
        "unlabelled node": measures["num_unlabelled"],
    }
    return text + "".join(
        f", {count:,} {noun}{'s' if count > 1 else ''}"
        for noun, count in optional.items()
        if count
    )


def display_name(name: str) -> str:
    """The name of a measure in tables."""
    return name.replace("_", " ")


def scalar_names(measures: Measures) -> list[str]:
    """The names of the measures that are numbers."""
    return [name for name in MEASURES if isinstance(measures.get(name), float)]


def format_value(name: str, measures: Measures) -> str:
    """A value with its confidence interval or its standard error."""
    text = format_number(measures[name], ".3f")
    if name in (intervals := measures.get("intervals", {})):
        low, high = intervals[name]
        return text if math.isnan(low) else f"{text} [{low:.3f}, {high:.3f}]"
    error = measures.get(f"{name}_standard_error")
    return f"{text} ± {error:.3f}" if error and not math.isnan(error) else text


def format_number(number: float | None, form: str) -> str:
    """A formatted number, or a dash for None and NaN."""
    return "–" if number is None or math.isnan(number) else format(number, form)


def interpret(name: str, measures: Measures) -> str:
    """One line of interpretation of a measure, given the other measures."""
    if math.isnan(measures[name]):
        if name.endswith("homophily") and math.isnan(measures.get("edge_homophily", 0)):
            return "no edge joins two labelled nodes"
        return UNDEFINED.get(name, "not defined for this graph")
    text, value = INTERPRETATIONS.get(name, ""), measures[name]
    return text.format(value) if isinstance(text, str) else text(value, measures)


def by_threshold(first: str, *steps: tuple[float, str]) -> Interpretation:
    """A text that depends on which thresholds the value exceeds."""
    bounds, texts = [bound for bound, _ in steps], [first, *(text for _, text in steps)]
    return lambda value, _: texts[bisect_right(bounds, value)]


def compared_with_neighbours(
    who: str,
    more: str = "more than neighbours",
    equal: str = "as much as neighbours",
    less: str = "less than neighbours",
) -> Interpretation:
    """A text that compares other nodes with the direct neighbours."""

    def interpretation(value: float, measures: Measures) -> str:
        difference = value - measures.get("node_homophily", math.nan)
        if math.isnan(difference):
            return f"{value:.0%} of them share a node's label"
        if abs(difference) <= TOLERANCE:
            return f"{who} agree {equal}"
        return f"{who} agree {more if difference > 0 else less}"

    return interpretation


def _edge_homophily_text(value: float, measures: Measures) -> str:
    text = f"{value:.0%} of edges join equal labels"
    if not measures["num_classes"]:
        return text
    return f"{text}; even classes give {1 / measures['num_classes']:.0%} by chance"


def _duplicate_test_text(value: float, measures: Measures) -> str:
    if duplicates_mislead(measures):
        return f"{value:.0%} of test nodes can be looked up in train: filter them"
    return f"{value:.0%} of test nodes have the neighbours of a train node"


def duplicates_mislead(measures: Measures) -> bool:
    """Whether a method may look up many test labels, by duplicates that agree."""
    return (
        measures.get("duplicate_test_nodes", 0.0) >= MANY_DUPLICATES
        and measures.get("duplicate_label_agreement", 1.0) >= AGREEING_DUPLICATES
    )


def _informativeness(neighbour: str) -> Interpretation:
    return by_threshold(
        f"{neighbour} label says nothing about a node's",
        (0.02, f"{neighbour} label says little about a node's"),
        (0.15, f"{neighbour} label says much about a node's"),
        (0.5, f"{neighbour} label almost gives a node's away"),
    )


HOMOPHILY_SCALE = by_threshold(
    "edges avoid their own class",
    (-0.05, "edges are independent of labels"),
    (0.05, "edges slightly favour their own class"),
    (0.3, "edges favour their own class"),
    (0.6, "edges keep to their own class"),
)

INTERPRETATIONS: dict[str, str | Interpretation] = {
    "edge_homophily": _edge_homophily_text,
    "node_homophily": "on average {:.0%} of neighbours share a node's label",
    "class_homophily": by_threshold(
        "no class keeps to itself more than by chance",
        (0.05, "some classes keep to themselves a little"),
        (0.3, "classes keep to themselves"),
        (0.6, "classes keep strictly to themselves"),
    ),
    "adjusted_homophily": HOMOPHILY_SCALE,
    "unbiased_homophily": HOMOPHILY_SCALE,
    "label_informativeness": _informativeness("a neighbour's"),
    "node_label_informativeness": _informativeness("a random neighbour's"),
    "monophily": by_threshold(
        "neighbours of a node are no more alike than by chance",
        (0.02, "neighbours of a node are somewhat alike"),
        (0.15, "neighbours of a node are alike: look two hops away"),
    ),
    "two_hop_node_homophily": compared_with_neighbours(
        "two-hop neighbours",
        more="more than neighbours: try LINKX",
    ),
    "aggregation_homophily": (
        "after averaging, {:.0%} of nodes are nearest their class"
    ),
    "generalised_edge_homophily": by_threshold(
        "features of neighbours have little in common",
        (0.1, "features of neighbours are somewhat alike"),
        (0.5, "features of neighbours are alike"),
    ),
    "in_node_homophily": compared_with_neighbours(
        "in-neighbours",
        more="more: keep the direction of edges",
        equal="as much as out-neighbours",
        less="less: keep the direction of edges",
    ),
    "shared_target_homophily": compared_with_neighbours("nodes with the same targets"),
    "shared_source_homophily": compared_with_neighbours("nodes with the same sources"),
    "duplicate_nodes": "{:.0%} of nodes have an equal neighbour set",
    "duplicate_label_agreement": (
        "on average {:.0%} of duplicates share a node's label"
    ),
    "duplicate_test_nodes": _duplicate_test_text,
}
"""A format of the value, or a function of all measures."""

UNDEFINED = {
    "unbiased_homophily": "for undirected graphs only: see --convention both-ways",
    "generalised_edge_homophily": "the nodes have no features",
    "in_node_homophily": "for directed graphs only",
    "shared_target_homophily": "for directed graphs only",
    "shared_source_homophily": "for directed graphs only",
    "duplicate_label_agreement": "no two labelled nodes have the same neighbours",
    "duplicate_test_nodes": "there are no splits",
}
