"""`unalike measure`: how homophilous is a graph?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import tyro

from unalike import datasets
from unalike.cli.console import (
    OUT,
    print_columns,
    print_json,
    print_notes,
    progress_bar,
)
from unalike.datasets.base import Dataset, Published
from unalike.display import MAX_CLASSES_SHOWN
from unalike.errors import UserError, lookup
from unalike.formatting import json_safe
from unalike.measures import CONVENTIONS, measure
from unalike.measures.interpretation import headline
from unalike.reports.dataset_tables import (
    comparison_columns,
    compatibility_columns,
    measure_columns,
)


def command(
    names: Annotated[tuple[str, ...], tyro.conf.Positional],
    /,
    *,
    only: tuple[str, ...] = (),
    convention: str = "stored",
    bootstrap: int = 0,
    seed: int = 0,
    data: Path | None = None,
    json: bool = False,
) -> None:
    """Tell how homophilous graphs are, measure by measure.

    The convention `stored` leaves out self-loops and edges with an unlabelled end, and
    reads every edge from its source; `both-ways` reads it from its target as well;
    `paper` counts what each number printed in the LINKX paper counts.

    Example: unalike measure texas --convention paper

    Args:
        names: Datasets, or paths to stored graphs; several are shown side by side.
        only: Measures to take; all of them when empty.
        convention: What to count: stored, both-ways or paper.
        bootstrap: Resamplings of nodes with their out-edges, for 95 % intervals.
        seed: Seed of the resamplings.
        data: Folder of the raw files of datasets.
        json: Print one JSON document instead of tables.
    """
    if not names:
        raise UserError("Name a dataset; `unalike list datasets` shows them all.")
    if bootstrap < 0:
        raise UserError(f"--bootstrap is {bootstrap}; 0 is the least.")
    asked: dict[str, Any] = {
        "only": [name.replace("-", "_") for name in only],
        "bootstrap": bootstrap,
        "seed": seed,
    }
    conventions = lookup(CONVENTIONS, convention, "convention")
    sources = [datasets.find(name, data) for name in names]
    found: dict[str, dict[str, Any]] = {}
    with progress_bar() as progress:
        for source in sources:
            told = conventions(source.name)
            found[source.name] = measure(
                source.load(), **asked, conventions=told, progress=progress
            )
    for source in sources:
        print_notes(source.remarks())
    published = {source.name: published_of(source) for source in sources}
    if json:
        print_json(json_safe(found if len(found) > 1 else next(iter(found.values()))))
        return
    for name, values in found.items():
        OUT.print(headline(name, values), soft_wrap=True, markup=False)
    OUT.print()
    if len(found) > 1:
        print_columns(comparison_columns(found, published))
        return
    show_one(next(iter(found.values())), next(iter(published.values())))


def published_of(source: datasets.GraphSource) -> Published | None:
    """The paper's numbers, if it prints any of this source."""
    return source.published if isinstance(source, Dataset) else None


def show_one(found: dict[str, Any], published: Published | None) -> None:
    """Print the measures of one dataset, and its compatibility matrix if small."""
    print_columns(measure_columns(found, published), spare=("difference", "meaning"))
    matrix = found.get("compatibility", [])
    if matrix and len(matrix) <= MAX_CLASSES_SHOWN:
        OUT.print("\ncompatibility: where the edges of each class end")
        print_columns(compatibility_columns(matrix))
    elif matrix:
        OUT.print(f"\nThe {len(matrix)} x {len(matrix)} compatibility: see --json.")
