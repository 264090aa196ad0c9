"""`unalike measure`: homophily measures of graphs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
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
from unalike.datasets.registry import unique_labels
from unalike.display import MAX_CLASSES_SHOWN
from unalike.errors import UserError, lookup
from unalike.measures import CONVENTIONS, measure
from unalike.measures.interpretation import duplicates_mislead, headline
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
    """Measure the homophily of graphs.

    The convention `stored` ignores self-loops and edges with an unlabelled end, and
    takes every edge from its source; `both-ways` takes it from its target as well;
    `paper` counts as the numbers of the LINKX paper do.

    Example: unalike measure texas --convention paper

    Args:
        names: Datasets, or paths to stored graphs; several are shown side by side.
        only: Measures to compute; all of them by default.
        convention: Edges to count: stored, both-ways or paper.
        bootstrap: Bootstrap samples of nodes with their out-edges, for 95 % intervals.
        seed: Seed of the bootstrap.
        data: Folder of the raw files of datasets.
        json: Print one JSON document instead of tables.
    """
    if not names:
        raise UserError("Name a dataset; `unalike list datasets` shows them all.")
    conventions = lookup(CONVENTIONS, convention, "convention")
    found = {name: datasets.find(name, data) for name in names}
    labels = unique_labels(found)
    sources = {labels[name]: source for name, source in found.items()}
    results: dict[str, dict[str, Any]] = {}
    with progress_bar() as progress:
        for label, source in sources.items():
            results[label] = measure(
                source.load(),
                only=[name.replace("-", "_") for name in only],
                bootstrap=bootstrap,
                seed=seed,
                conventions=conventions(source.name),
                splits=source.splits(),
                progress=progress,
            )
    for label, source in sources.items():
        print_notes(*source.remarks(), *duplicates_note(source.name, results[label]))
    published = {
        label: source.published if isinstance(source, Dataset) else None
        for label, source in sources.items()
    }
    if json:
        print_json(results if len(results) > 1 else next(iter(results.values())))
        return
    for name, values in results.items():
        OUT.print(headline(name, values), soft_wrap=True)
    OUT.print()
    if len(results) > 1:
        print_columns(comparison_columns(results, published))
        return
    ((label, source),) = sources.items()
    print_measures(results[label], published[label], source.load().class_names)


def duplicates_note(name: str, values: Mapping[str, Any]) -> list[str]:
    """A note if test labels can be looked up in train and a filtered graph exists."""
    filtered = f"{name}-filtered"
    if not duplicates_mislead(values) or filtered not in datasets.DATASETS:
        return []
    return [
        f"{values['duplicate_test_nodes']:.0%} of the test nodes of {name} can be "
        f"looked up in train: they have the neighbours of a train node; use {filtered}"
    ]


def print_measures(
    values: dict[str, Any],
    published: Published | None,
    class_names: Sequence[Hashable] | None,
) -> None:
    """Print the measures of one dataset, and its compatibility matrix if small."""
    print_columns(measure_columns(values, published), spare=("difference", "meaning"))
    matrix = values.get("compatibility", [])
    if matrix and len(matrix) <= MAX_CLASSES_SHOWN:
        OUT.print("\ncompatibility: where the edges of each class end")
        print_columns(compatibility_columns(matrix, class_names))
    elif matrix:
        OUT.print(f"\nThe {len(matrix)} x {len(matrix)} compatibility: see --json.")
