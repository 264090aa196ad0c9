"""Findings: the measures of datasets as tables on a terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rich.table import Table

from unalike.measures import MEASURES
from unalike.reports.words import in_words

PRINTED_AS = {
    "edge_homophily": "edge_homophily",
    "class_homophily": "class_homophily",
    "node_homophily": "one_hop",
    "two_hop_node_homophily": "two_hop",
}
"""The name under which the paper's value of a measure is kept."""

SMALL = 12
"""Compatibility matrices of up to so many classes are shown whole."""


def printed(published: object | None, name: str) -> float | None:
    """The paper's value of a measure, if it has one."""
    return getattr(published, PRINTED_AS.get(name, ""), None)


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


def one_dataset(found: Mapping[str, Any], published: object | None) -> Table:
    """Each measure of one dataset with its meaning and the paper's value."""
    compared = any(printed(published, name) is not None for name in found)
    table = Table("measure", box=None, pad_edge=False, header_style="bold")
    for column in ("value", *(("paper", "difference") if compared else ())):
        table.add_column(column, justify="right")
    table.add_column("meaning")
    for name in scalars(found):
        told = printed(published, name)
        lead = None if told is None else found[name] - told
        cells = [shown(told, ".3f"), shown(lead, "+.3f")]
        table.add_row(
            name.replace("_", " "),
            value(name, found),
            *(cells if compared else ()),
            in_words(name, found),
        )
    return table


def many_datasets(
    found: Mapping[str, Mapping[str, Any]], published: Mapping[str, object | None]
) -> Table:
    """The measures of several datasets side by side, the paper's in brackets."""
    table = Table("measure", box=None, pad_edge=False, header_style="bold")
    for dataset in found:
        table.add_column(dataset, justify="right")
    for name in scalars(next(iter(found.values()))):
        cells = []
        for dataset, values in found.items():
            told = printed(published[dataset], name)
            paper = "" if told is None else f" ({told:.3f})"
            cells.append(value(name, values) + paper)
        table.add_row(name.replace("_", " "), *cells)
    return table


def compatibility_table(matrix: list[list[float]]) -> Table:
    """The compatibility matrix: from the class of the row to that of the column."""
    table = Table("from \\ to", box=None, pad_edge=False, header_style="bold")
    for column in range(len(matrix)):
        table.add_column(str(column), justify="right")
    for place, row in enumerate(matrix):
        table.add_row(str(place), *(shown(share, ".3f") for share in row))
    return table


def scalars(found: Mapping[str, Any]) -> list[str]:
    """The measures that were found, but for matrices."""
    return [name for name in MEASURES if isinstance(found.get(name), float)]


def value(name: str, found: Mapping[str, Any]) -> str:
    """A value with its interval or its standard error."""
    told = shown(found[name], ".3f")
    if name in (intervals := found.get("intervals", {})):
        low, high = intervals[name]
        return told if math.isnan(low) else f"{told} [{low:.3f}, {high:.3f}]"
    error = found.get(f"{name}_standard_error")
    return f"{told} ± {error:.3f}" if error else told


def shown(number: float | None, form: str) -> str:
    """A number, or a dash where there is none."""
    return "–" if number is None or math.isnan(number) else format(number, form)
