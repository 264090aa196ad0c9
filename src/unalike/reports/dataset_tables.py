"""Dataset statistics and homophily tables beside published numbers."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from unalike import datasets
from unalike.datasets.base import Published
from unalike.errors import UserError
from unalike.measures import MEASURES, STORED, measure, paper_conventions
from unalike.measures.interpretation import (
    display_name,
    format_number,
    format_value,
    interpret,
    scalar_names,
)
from unalike.progress import NO_PROGRESS, Progress
from unalike.reports.tables import ResultTable, StatisticCell
from unalike.reports.text_table import Column

# Statistics: the tables about datasets, ours beside the printed numbers.


PAPER_SAMPLE = 500
"""Nodes in the samples behind the printed two-hop numbers."""


def statistics(
    name: str, title: str, *, data: Path | None = None, progress: Progress = NO_PROGRESS
) -> ResultTable:
    """A table of dataset statistics, each counted as the printed number was."""
    rows: dict[str, dict[str, StatisticCell]] = {}
    missing: dict[str, str] = {}
    remarks: list[str] = []
    for line in read_published(name):
        dataset = line.pop("dataset")
        found: dict[str, Any] = {}
        try:
            source = datasets.find(dataset, data)
            found = compute_statistics(source, list(line), progress)
            remarks += source.remarks()
        except UserError as error:
            missing[dataset] = str(error)
        rows[dataset] = {
            key: _statistic_cell(key, found, told) for key, told in line.items()
        }
    return ResultTable(title, rows, missing, remarks)


def read_published(name: str) -> list[dict[str, str]]:
    """The printed numbers of a table, a row for each dataset."""
    text = (files("unalike.reports") / "published" / f"{name}.csv").read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


def compute_statistics(
    source: datasets.GraphSource, columns: list[str], progress: Progress
) -> dict[str, Any]:
    """Our numbers for a dataset, with the conventions of the paper."""
    conventions = paper_conventions(source.name)
    only = [column for column in columns if column in MEASURES]
    graph = source.load()
    found = measure(graph, only=only, conventions=conventions, progress=progress)
    if not conventions.get("num_edges", STORED).loops:
        found["num_edges"] -= found["num_loops"]
    return found


def _statistic_cell(key: str, found: dict[str, Any], printed: str) -> StatisticCell:
    spread = found.get(f"{key}_deviation", 0.0) / math.sqrt(PAPER_SAMPLE)
    error = math.hypot(found.get(f"{key}_standard_error", 0.0), spread)
    return StatisticCell(found.get(key), printed, error)


TABLES: dict[str, Callable[..., ResultTable]] = {
    name: partial(statistics, name, title)
    for name, title in {
        "statistics-proposed": "Statistics of the proposed datasets",
        "statistics-geom-gcn": "Statistics of the six older datasets",
        "statistics-homophilous": "Statistics of homophilous datasets",
        "two-hop": "Node homophily of neighbours and of two-hop neighbours",
    }.items()
}

# Findings: the measures of datasets as columns of a table.


PUBLISHED_FIELD = {
    "edge_homophily": "edge_homophily",
    "class_homophily": "class_homophily",
    "node_homophily": "one_hop",
    "two_hop_node_homophily": "two_hop",
}
"""The name under which the paper's value of a measure is kept."""


def published_value(published: Published | None, name: str) -> float | None:
    """The paper's value of a measure, if it has one."""
    key = PUBLISHED_FIELD.get(name)
    return asdict(published)[key] if published and key else None


def measure_columns(
    found: Mapping[str, Any], published: Published | None
) -> list[Column]:
    """Each measure of one dataset with its meaning and the paper's value."""
    names = scalar_names(found)
    told = {name: published_value(published, name) for name in names}
    leads = {
        name: found[name] - number
        for name, number in told.items()
        if number is not None
    }
    compared = [
        Column(
            "paper",
            [format_number(told[name], ".3f") for name in names],
            align_right=True,
        ),
        Column(
            "difference",
            [format_number(leads.get(name), "+.3f") for name in names],
            align_right=True,
        ),
    ]
    return [
        Column("measure", [display_name(name) for name in names]),
        Column(
            "value", [format_value(name, found) for name in names], align_right=True
        ),
        *(compared if leads else ()),
        Column("meaning", [interpret(name, found) for name in names], wrap=True),
    ]


def comparison_columns(
    found: Mapping[str, Mapping[str, Any]], published: Mapping[str, Published | None]
) -> list[Column]:
    """The measures of several datasets side by side, the paper's in brackets."""
    names = scalar_names(next(iter(found.values())))

    def cell(dataset: str, name: str) -> str:
        told = published_value(published[dataset], name)
        paper = "" if told is None else f" ({told:.3f})"
        return format_value(name, found[dataset]) + paper

    return [
        Column("measure", [display_name(name) for name in names]),
        *(
            Column(dataset, [cell(dataset, name) for name in names], align_right=True)
            for dataset in found
        ),
    ]


def compatibility_columns(matrix: list[list[float]]) -> list[Column]:
    """The compatibility matrix: from the class of the row to that of the column."""
    classes = [str(place) for place in range(len(matrix))]
    return [
        Column("from \\ to", classes),
        *(
            Column(
                name,
                [format_number(row[place], ".3f") for row in matrix],
                align_right=True,
            )
            for place, name in enumerate(classes)
        ),
    ]
