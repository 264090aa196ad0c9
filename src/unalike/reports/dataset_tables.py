"""Tables of dataset statistics and homophily, with published numbers."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from unalike import datasets
from unalike.datasets.base import Published
from unalike.display import Column
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
from unalike.reports.tables import ResultTable, StatisticCell, TableCell, TextCell

PAPER_SAMPLE = 500
"""Sampled nodes of the published two-hop numbers."""


def statistics(
    name: str, title: str, *, data: Path | None = None, progress: Progress = NO_PROGRESS
) -> ResultTable:
    """A table of dataset statistics, with the conventions of the published numbers."""
    rows: dict[str, dict[str, TableCell]] = {}
    missing: dict[str, str] = {}
    remarks: list[str] = []
    for line in read_published(name):
        dataset = line.pop("dataset")
        values: dict[str, Any] = {}
        try:
            source = datasets.find(dataset, data)
            values = compute_statistics(source, list(line), progress)
            remarks += source.remarks()
        except UserError as error:
            missing[dataset] = str(error)
        rows[dataset] = {
            key: _statistic_cell(key, values, published)
            for key, published in line.items()
        }
    return ResultTable(title, rows, missing, remarks)


def read_published(name: str) -> list[dict[str, str]]:
    """The published numbers of a table, a row for each dataset."""
    text = (files("unalike.reports") / "published" / f"{name}.csv").read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


def compute_statistics(
    source: datasets.GraphSource, columns: list[str], progress: Progress
) -> dict[str, Any]:
    """Measures of a dataset with the conventions of the paper."""
    conventions = paper_conventions(source.name)
    only = [column for column in columns if column in MEASURES]
    graph = source.load()
    values = measure(graph, only=only, conventions=conventions, progress=progress)
    if not conventions.get("num_edges", STORED).loops:
        values["num_edges"] -= values["num_loops"]
    return values


TEXT_COLUMNS = ("context", "class_types")
"""Columns of words of the paper, which are not computed."""


def _statistic_cell(key: str, values: dict[str, Any], published: str) -> TableCell:
    if key in TEXT_COLUMNS:
        return TextCell(published)
    paper_error = values.get(f"{key}_deviation", 0.0) / math.sqrt(PAPER_SAMPLE)
    error = math.hypot(values.get(f"{key}_standard_error", 0.0), paper_error)
    return StatisticCell(values.get(key), published, error)


TABLES: dict[str, Callable[..., ResultTable]] = {
    name: partial(statistics, name, title)
    for name, title in {
        "statistics-proposed": "Statistics of the proposed datasets",
        "statistics-geom-gcn": "Statistics of the six older datasets",
        "statistics-homophilous": "Statistics of homophilous datasets",
        "two-hop": "Node homophily of neighbours and of two-hop neighbours",
    }.items()
}

# Columns of `unalike measure`.


PUBLISHED_FIELD = {
    "edge_homophily": "edge_homophily",
    "class_homophily": "class_homophily",
    "node_homophily": "one_hop",
    "two_hop_node_homophily": "two_hop",
}
"""Field of `Published` by the name of a measure."""


def published_value(published: Published | None, name: str) -> float | None:
    """The published value of a measure, if there is one."""
    key = PUBLISHED_FIELD.get(name)
    return asdict(published)[key] if published and key else None


def measure_columns(
    values: Mapping[str, Any], published: Published | None
) -> list[Column]:
    """Each measure of one dataset with its meaning and the published value."""
    names = scalar_names(values)
    paper = {name: published_value(published, name) for name in names}
    known = {name: number for name, number in paper.items() if number is not None}
    differences = {name: values[name] - number for name, number in known.items()}
    numbers = {"value": [format_value(name, values) for name in names]}
    if known:
        numbers["paper"] = [format_number(paper[name], ".3f") for name in names]
        numbers["difference"] = [
            format_number(differences.get(name), "+.3f") for name in names
        ]
    return [
        Column("measure", [display_name(name) for name in names]),
        *(Column(name, cells, align_right=True) for name, cells in numbers.items()),
        Column("meaning", [interpret(name, values) for name in names], wrap=True),
    ]


def comparison_columns(
    values: Mapping[str, Mapping[str, Any]], published: Mapping[str, Published | None]
) -> list[Column]:
    """The measures of several datasets, with the published values in brackets."""
    names = scalar_names(next(iter(values.values())))

    def cell(dataset: str, name: str) -> str:
        number = published_value(published[dataset], name)
        paper = "" if number is None else f" ({number:.3f})"
        return format_value(name, values[dataset]) + paper

    return [
        Column("measure", [display_name(name) for name in names]),
        *(
            Column(dataset, [cell(dataset, name) for name in names], align_right=True)
            for dataset in values
        ),
    ]


def compatibility_columns(
    matrix: list[list[float]], class_names: Sequence[Hashable] | None = None
) -> list[Column]:
    """The compatibility matrix: from the class of the row to that of the column."""
    names = [*map(str, class_names or range(len(matrix)))]
    texts = [[format_number(value, ".3f") for value in row] for row in matrix]
    columns = [
        Column(name, cells, align_right=True)
        for name, cells in zip(names, zip(*texts, strict=True), strict=True)
    ]
    return [Column("from \\ to", names), *columns]
