"""Findings: the measures of datasets as columns of a table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from unalike.datasets.dataset import Published
from unalike.measures import MEASURES
from unalike.reports.layout import Column
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


def printed(published: Published | None, name: str) -> float | None:
    """The paper's value of a measure, if it has one."""
    key = PRINTED_AS.get(name)
    return asdict(published)[key] if published and key else None


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


def one_dataset(found: Mapping[str, Any], published: Published | None) -> list[Column]:
    """Each measure of one dataset with its meaning and the paper's value."""
    names = scalars(found)
    told = {name: printed(published, name) for name in names}
    leads = {
        name: found[name] - number
        for name, number in told.items()
        if number is not None
    }
    compared = [
        Column("paper", [shown(told[name], ".3f") for name in names], right=True),
        Column(
            "difference", [shown(leads.get(name), "+.3f") for name in names], right=True
        ),
    ]
    return [
        Column("measure", [spaced(name) for name in names]),
        Column("value", [value(name, found) for name in names], right=True),
        *(compared if leads else ()),
        Column("meaning", [in_words(name, found) for name in names], wraps=True),
    ]


def many_datasets(
    found: Mapping[str, Mapping[str, Any]], published: Mapping[str, Published | None]
) -> list[Column]:
    """The measures of several datasets side by side, the paper's in brackets."""
    names = scalars(next(iter(found.values())))

    def cell(dataset: str, name: str) -> str:
        told = printed(published[dataset], name)
        paper = "" if told is None else f" ({told:.3f})"
        return value(name, found[dataset]) + paper

    return [
        Column("measure", [spaced(name) for name in names]),
        *(
            Column(dataset, [cell(dataset, name) for name in names], right=True)
            for dataset in found
        ),
    ]


def compatibility_columns(matrix: list[list[float]]) -> list[Column]:
    """The compatibility matrix: from the class of the row to that of the column."""
    classes = [str(place) for place in range(len(matrix))]
    return [
        Column("from \\ to", classes),
        *(
            Column(name, [shown(row[place], ".3f") for row in matrix], right=True)
            for place, name in enumerate(classes)
        ),
    ]


def spaced(name: str) -> str:
    """A measure as tables call it."""
    return name.replace("_", " ")


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
