"""Statistics: the tables about datasets, ours beside the printed numbers."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from unalike import datasets
from unalike.errors import UserError
from unalike.measures import MEASURES, STORED, measure, paper_conventions
from unalike.progress import SILENT, Progress
from unalike.reports.cell import Cell
from unalike.reports.report import Report

PAPER_SAMPLE = 500
"""Nodes in the samples behind the printed two-hop numbers."""


def statistics(
    name: str, title: str, *, data: Path | None = None, progress: Progress = SILENT
) -> Report:
    """A table of dataset statistics, each counted as the printed number was."""
    rows: dict[str, dict[str, Cell]] = {}
    missing: dict[str, str] = {}
    remarks: list[str] = []
    for line in published(name):
        dataset = line.pop("dataset")
        found: dict[str, Any] = {}
        try:
            source = datasets.find(dataset, data)
            found = recounted(source, list(line), progress)
            remarks += source.remarks()
        except UserError as error:
            missing[dataset] = str(error)
        rows[dataset] = {key: _cell(key, found, told) for key, told in line.items()}
    return Report(title, rows, missing, remarks)


def published(name: str) -> list[dict[str, str]]:
    """The printed numbers of a table, a row for each dataset."""
    text = (files("unalike.reports") / "published" / f"{name}.csv").read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


def recounted(
    source: datasets.Source, columns: list[str], progress: Progress
) -> dict[str, Any]:
    """Our numbers for a dataset, with the conventions of the paper."""
    conventions = paper_conventions(source.name)
    only = [column for column in columns if column in MEASURES]
    graph = source.load()
    found = measure(graph, only=only, conventions=conventions, progress=progress)
    if not conventions.get("num_edges", STORED).loops:
        found["num_edges"] -= found["num_loops"]
    return found


def _cell(key: str, found: dict[str, Any], printed: str) -> Cell:
    spread = found.get(f"{key}_deviation", 0.0) / math.sqrt(PAPER_SAMPLE)
    error = math.hypot(found.get(f"{key}_standard_error", 0.0), spread)
    return Cell(found.get(key), printed, error)


TABLES: dict[str, Callable[..., Report]] = {
    name: partial(statistics, name, title)
    for name, title in {
        "statistics-proposed": "Statistics of the proposed datasets",
        "statistics-geom-gcn": "Statistics of the six older datasets",
        "statistics-homophilous": "Statistics of homophilous datasets",
        "two-hop": "Node homophily of neighbours and of two-hop neighbours",
    }.items()
}
