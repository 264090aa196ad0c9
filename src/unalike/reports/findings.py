"""Findings: the measures of datasets as columns of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from unalike.datasets.dataset import Published
from unalike.measures.found import scalars, shown, spaced, value
from unalike.measures.words import in_words
from unalike.reports.layout import Column

PRINTED_AS = {
    "edge_homophily": "edge_homophily",
    "class_homophily": "class_homophily",
    "node_homophily": "one_hop",
    "two_hop_node_homophily": "two_hop",
}
"""The name under which the paper's value of a measure is kept."""


def printed(published: Published | None, name: str) -> float | None:
    """The paper's value of a measure, if it has one."""
    key = PRINTED_AS.get(name)
    return asdict(published)[key] if published and key else None


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
