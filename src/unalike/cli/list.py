"""`unalike list`: list datasets, methods, samplers, measures and metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import getdoc
from pathlib import Path
from typing import Annotated, Any

import tyro

from unalike.cli.console import OUT, print_columns, print_json
from unalike.display import Column
from unalike.errors import lookup

Rows = list[dict[str, Any]]


def datasets(data: Path | None) -> Rows:
    """Every dataset with its size, and which of its files are present."""
    from unalike.datasets.registry import describe_dataset, list_datasets

    return [describe_dataset(dataset) for dataset in list_datasets(data)]


def twins(data: Path | None) -> Rows:
    """Every synthetic twin of a dataset with its size."""
    from unalike.datasets.registry import describe_twin
    from unalike.datasets.twins import TWINS

    return [describe_twin(twin.with_root(data)) for twin in TWINS.values()]


def methods(data: Path | None) -> Rows:
    """Every method with its hyperparameters and their defaults."""
    from unalike.methods import METHODS
    from unalike.options import choices, options_of
    from unalike.training.state import Training

    shared = options_of(Training()) | {"batching": None}
    rows = []
    for name, method in METHODS.items():
        options = options_of(method(), omit=False)
        batchings = list(choices(method).get("batching", ()))
        rows.append(
            {
                "name": name,
                "family": method.family,
                "hyperparameters": _without(options, shared),
                "training": _without(options, _without(options, shared)),
                "batchings": batchings,
                "batching": _shortened(batchings),
                "what": first_line(method),
                "paper": method.paper,
            }
        )
    return rows


def _without(options: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key not in others}


def _shortened(names: list[str]) -> str:
    first, *others = names or [""]
    return f"{first}, {len(others)} samplers" if len(others) > 2 else ", ".join(names)


def recipes(data: Path | None) -> Rows:
    """Every row of the results tables with its method and settings."""
    from unalike.experiments.recipe import grid_size, paper_tables

    return [
        {
            "name": recipe.name,
            "row": recipe.row,
            "method": recipe.method or "",
            "batching": recipe.batching,
            "settings": grid_size(recipe),
            "variants": ", ".join(recipe.variants),
            "datasets": ", ".join(cells),
            "quoted": {
                name: cells[name].quoted for name in cells if cells[name].quoted
            },
            "printed": {name: cell.mean for name, cell in cells.items()},
        }
        for table in paper_tables().values()
        for recipe in table.recipes()
        for cells in [recipe.cells]
    ]


def measures(data: Path | None) -> Rows:
    """Every homophily measure with its meaning."""
    from unalike.measures import MEASURES

    return [
        {"name": name, "what": first_line(function), "definition": getdoc(function)}
        for name, function in MEASURES.items()
    ]


def batchings(data: Path | None) -> Rows:
    """Every sampler of batches."""
    from unalike.options import options_of
    from unalike.samplers import SAMPLERS

    return [
        {
            "name": name,
            "what": first_line(kind),
            "settings": options_of(kind(), omit=False),
        }
        for name, kind in SAMPLERS.items()
    ]


def metrics(data: Path | None) -> Rows:
    """Every metric with its meaning."""
    from unalike.data.regression import ALL_METRICS

    return [
        {"name": name, "what": first_line(metric.score)}
        for name, metric in ALL_METRICS.items()
    ]


@dataclass(frozen=True)
class Listing:
    """The rows of a list, and the columns of its table."""

    rows: Callable[[Path | None], Rows]
    columns: str
    """Keys of the columns of the table; --json prints all keys."""
    spare: tuple[str, ...] = ()
    """Headings that a narrow table drops first."""


HEADINGS = {
    "num_nodes": "nodes",
    "num_edges": "edges",
    "num_classes": "classes",
    "edge_homophily": "edge h",
    "class_homophily": "class h",
    "raw": "files",
}
"""Headings of columns that differ from their keys."""

SIZES = "name num_nodes num_edges num_classes edge_homophily"
LISTINGS = {
    "datasets": Listing(
        datasets,
        f"{SIZES} class_homophily metric licence raw stored",
        spare=("licence", "metric", "stored", "class h"),
    ),
    "twins": Listing(
        twins, f"{SIZES} monophily metric stored", spare=("stored", "metric")
    ),
    "methods": Listing(
        methods,
        "name family hyperparameters batching paper",
        spare=("paper", "batching"),
    ),
    "batchings": Listing(batchings, "name what settings"),
    "recipes": Listing(
        recipes,
        "name method batching settings variants datasets",
        spare=("variants", "batching"),
    ),
    "measures": Listing(measures, "name what"),
    "metrics": Listing(metrics, "name what"),
}

WRAPPED = ("what", "licence", "settings", "hyperparameters", "paper", "datasets")
"""Keys of cells that may take several lines."""


def command(
    kind: Annotated[str, tyro.conf.Positional] = "",
    /,
    *,
    data: Path | None = None,
    all: bool = False,
    json: bool = False,
) -> None:
    """List what is available.

    Example: unalike list datasets

    Args:
        kind: What to list: datasets, twins, methods, batchings, recipes,
            measures or metrics.
        data: The data root; by default $UNALIKE_DATA, else the user's cache folder.
        all: List every school of Facebook100, also those whose files are missing.
        json: Print one JSON document instead of a table.
    """
    if not kind:
        rows = [
            {"name": name, "what": first_line(listing.rows)}
            for name, listing in LISTINGS.items()
        ]
        print_rows(rows, "name what", json=json)
        return
    listing = lookup(LISTINGS, kind, "kind of thing to list")
    all_rows = listing.rows(data)
    rows = [row for row in all_rows if all or not row.get("minor")]
    print_rows(rows, listing.columns, spare=listing.spare, json=json)
    if len(rows) < len(all_rows) and not json:
        hidden = len(all_rows) - len(rows)
        OUT.print(f"and {hidden} more schools of Facebook100; `--all` names them.")


def print_rows(
    rows: Rows, columns: str, *, spare: tuple[str, ...] = (), json: bool
) -> None:
    """Print rows as a table, or with all keys as a JSON document."""
    if json:
        print_json(rows)
        return
    table = []
    for key in columns.split():
        values = [row[key] for row in rows]
        right = not any(isinstance(value, str | dict) for value in values)
        cells, heading = map(format_cell, values), HEADINGS.get(key, key)
        table.append(Column(heading, [*cells], align_right=right, wrap=key in WRAPPED))
    print_columns(table, spare=spare)


def format_cell(value: Any) -> str:
    """A value as text of a table."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.3f}"
        case int():
            return f"{value:,}"
        case dict():
            return ", ".join(f"{key}={inner}" for key, inner in value.items())
    return str(value)


def first_line(documented: object) -> str:
    """The first line of a docstring."""
    return (getdoc(documented) or "").partition("\n")[0]
