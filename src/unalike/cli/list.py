"""`unalike list`: what there is to choose from."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.table import Table

from unalike.cli.console import OUT, Voice, answer
from unalike.errors import lookup
from unalike.metrics import METRICS

Rows = list[dict[str, Any]]


def metrics() -> Rows:
    """Every metric with what it measures."""
    return [
        {"name": name, "what": (metric.grade.__doc__ or "").splitlines()[0]}
        for name, metric in METRICS.items()
    ]


def datasets(data: Path | None, *, every: bool) -> Rows:
    """Every dataset with its size, and what of it is at hand."""
    from unalike.datasets.catalogue import catalogue, entry, is_worth_listing

    return [
        entry(dataset)
        for dataset in catalogue(data)
        if every or is_worth_listing(dataset)
    ]


KINDS = {"metrics": metrics}

HEADS = {
    "num_nodes": "nodes",
    "num_edges": "edges",
    "num_classes": "classes",
    "edge_homophily": "edge h",
    "class_homophily": "class h",
    "raw": "files",
}
"""How a table heads what JSON tells by longer names; others keep theirs."""

LONG = (
    "about",
    "citation",
    "directed",
    "folder",
    "label_meaning",
    "num_features",
    "published",
)
"""What only JSON tells."""

WRAPPED = ("what", "licence")
"""What may take several lines in a narrow terminal."""

WIDTH = 120
"""Columns of a table that does not go to a terminal."""


def command(
    kind: Annotated[str, tyro.conf.Positional],
    /,
    *,
    data: Path | None = None,
    all: bool = False,
    json: bool = False,
) -> None:
    """Show what there is to choose from.

    Example: unalike list datasets

    Args:
        kind: What to list: metrics, datasets.
        data: The data root; by default $UNALIKE_DATA, else the user's cache folder.
        all: Name every school of Facebook100, also those whose files are not here.
        json: Print one JSON document instead of a table.
    """
    kinds: dict[str, Callable[[], Rows]] = {
        **KINDS,
        "datasets": partial(datasets, data, every=all),
    }
    rows = lookup(kinds, kind, "kind of thing to list")()
    if json:
        answer(rows)
        return
    show(rows)
    if kind in OMISSIONS and not all:
        OUT.print(OMISSIONS[kind](rows))


def omitted_datasets(rows: Rows) -> str:
    """How many datasets a short list leaves out."""
    from unalike.datasets import DATASETS

    left = len(set(DATASETS) - {row["name"] for row in rows})
    return f"and {left} more schools of Facebook100; `--all` names them."


OMISSIONS = {"datasets": omitted_datasets}


def show(rows: Rows) -> None:
    """Print rows as a table; numbers stand on the right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    keys = [key for key in rows[0] if key not in LONG]
    for key in keys:
        values = [row[key] for row in rows]
        texts = any(isinstance(value, str) for value in values)
        table.add_column(
            HEADS.get(key, key),
            justify="left" if texts else "right",
            no_wrap=key not in WRAPPED,
        )
    for row in rows:
        table.add_row(*(cell(row[key]) for key in keys))
    wide = OUT if OUT.is_terminal else Voice(highlight=False, width=WIDTH)
    wide.print(table)


def cell(value: Any) -> str:
    """A value as a table shows it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
