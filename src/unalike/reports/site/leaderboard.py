"""Leaderboards, table of all runs, missing cells and failures as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import mean
from typing import Any

from unalike.datasets import find
from unalike.datasets.base import Dataset
from unalike.errors import UserError
from unalike.experiments.config import FULL_BATCH
from unalike.experiments.database import Row
from unalike.experiments.recipe import PaperTable, Recipe, RecipeCell
from unalike.experiments.selection import (
    MOST_COMPLETE,
    CellSelection,
    ConfigRuns,
    best_with_most_splits,
)
from unalike.methods import METHODS
from unalike.reports.result_tables import (
    Rows,
    highlight_best,
    score_cell,
    with_relative_errors,
)
from unalike.reports.site.documents import (
    DIGITS,
    Document,
    GraphKey,
    config_id,
    graph_labels,
    method_runs_id,
)
from unalike.reports.tables import ScoreCell, rank


def cell(score: ScoreCell, selection: CellSelection, further: Document) -> Document:
    """A cell as JSON, with the cost and the ids of its runs, without empty keys."""
    document = score.to_dict
    if chosen := selection.chosen:
        first = chosen.runs[0]
        document |= {
            "runs": len(chosen.runs),
            "valid": chosen.valid,
            **mean_cost(chosen),
            "method_runs": method_runs_id(first),
            "config": config_id(first),
            "configs": selection.num_complete,
            "grid_size": selection.grid_size,
        }
    filled = {
        name: round_floats(value)
        for name, value in document.items()
        if value is not None and value is not False
    }
    return filled | further


def mean_cost(config: ConfigRuns) -> Document:
    """The mean time of a run, the largest memory of any run, and the devices."""
    devices = sorted({row["device"] for row in config.runs})
    return {
        "seconds": mean(row["seconds"] for row in config.runs),
        "memory_mb": max(row["peak_memory_mb"] for row in config.runs),
        "device": ", ".join(devices),
    }


def round_floats(value: Any) -> Any:
    """A float with four digits after the point; any other value as it is."""
    return round(value, DIGITS) if isinstance(value, float) else value


Selections = Mapping[Any, Mapping[Any, tuple[CellSelection, Document]]]
"""Selected configurations by row and column, and further keys of their cells."""


def table_document(
    about: Document,
    rows: Mapping[Any, Document],
    columns: Mapping[Any, Document],
    scores: Rows,
    selections: Selections,
) -> Document:
    """A table as JSON, with the best cells of its columns shaded."""
    shaded = highlight_best(scores, about["shaded"]) if scores else {}
    return {
        **about,
        "rows": list(rows.values()),
        "columns": list(columns.values()),
        "cells": [
            [
                cell(shaded[row][column], *selections[row][column])
                if column in shaded[row]
                else None
                for column in columns
            ]
            for row in rows
        ],
        "rankings": rankings([shaded[row] for row in rows], columns),
    }


def rankings(
    rows: Sequence[Mapping[Any, ScoreCell]], columns: Iterable[Any]
) -> list[list[int]]:
    """The places of the rows that have a number, for each column, the best first.

    The printed number stands in where there is none of ours.
    """
    return [
        rank([row[column].value if column in row else None for row in rows])
        for column in columns
    ]


# Leaderboards: results tables of the paper, our numbers with the published ones.


CellLookup = Callable[[Recipe, RecipeCell], CellSelection]
"""Selects the configuration of a cell from the database."""

MAX_CLASS_HOMOPHILY = 0.35
"""Datasets above it are homophilous.

The published values of the paper's non-homophilous datasets go up to 0.272; those of
its homophilous ones start at 0.416.
"""


def leaderboard(
    table: PaperTable, recipes: Sequence[Recipe], lookup: CellLookup
) -> Document:
    """A results table as JSON."""
    selections = {
        recipe.row: {
            name: (lookup(recipe, one), {"sweep": sweep_command(recipe, one)})
            for name, one in recipe.cells.items()
        }
        for recipe in recipes
    }
    scores = {
        recipe.row: {
            name: score_cell(one, selections[recipe.row][name][0])
            for name, one in recipe.cells.items()
        }
        for recipe in recipes
    }
    names = dict.fromkeys(name for row in scores.values() for name in row)
    return table_document(
        {"name": table.name, "title": table.title, "shaded": table.shaded},
        {one.row: row_header(one.row, one.method, one.batching) for one in recipes},
        {name: column(name, selections) for name in names},
        with_relative_errors(scores, recipes),
        selections,
    )


def row_header(label: str, method: str | None, batching: str) -> Document:
    """The label of a row and the keys that filter it."""
    known = METHODS.get(method or "")
    family = known.family if known else "not implemented"
    return {"label": label, "method": method, "family": family, "batching": batching}


def column(name: str, selections: Selections) -> Document:
    """A dataset, with the metric of the runs on it where there are any."""
    selected = [row[name][0].chosen for row in selections.values() if name in row]
    metrics = {one.runs[0]["metric"] for one in selected if one}
    return {"label": name, "metric": ", ".join(sorted(metrics))}


def sweep_command(recipe: Recipe, one: RecipeCell) -> str | None:
    """The command that runs all configurations of a cell, where it can be run."""
    if not recipe.is_implemented:
        return None
    argv = ["unalike", "sweep", recipe.name, "--only", f"dataset={one.dataset}"]
    return shlex.join([*argv, *(["--quoted"] if one.quoted else [])])


def opening_table(
    tables: Sequence[Document],
    recipes: Mapping[str, Sequence[Recipe]],
    data: Path | None,
) -> str:
    """The name of the table that the page opens with.

    It is the table of non-homophilous datasets that has numbers of ours in the most
    columns, then in the most cells. Without such a table it is the last one, which
    shows all runs.
    """
    widths = {
        table["name"]: num_filled(table)
        for table in tables
        if table["name"] in recipes and is_non_homophilous(recipes[table["name"]], data)
    }
    widest = max(widths, key=lambda name: widths[name], default=None)
    return widest if widest and any(widths[widest]) else str(tables[-1]["name"])


def num_filled(table: Document) -> tuple[int, int]:
    """How many columns and how many cells of a table have a number of ours."""
    filled = [
        index
        for cells in table["cells"]
        for index, one in enumerate(cells)
        if one and "mean" in one
    ]
    return len(set(filled)), len(filled)


def is_non_homophilous(recipes: Iterable[Recipe], data: Path | None) -> bool:
    """Is no dataset of a table known to be homophilous?"""
    for name in {one.dataset for recipe in recipes for one in recipe.cells.values()}:
        with suppress(UserError):
            dataset = find(name, data)
            published = dataset.published if isinstance(dataset, Dataset) else None
            homophily = published and published.class_homophily
            if homophily and homophily > MAX_CLASS_HOMOPHILY:
                return False
    return True


# The table of all runs, whatever their configuration.


NO_PATHS: Mapping[GraphKey, str] = {}
GroupKey = tuple[tuple[str, str], tuple[str, str, str, str]]
"""The row (method, batching) and the column (dataset, view, metric, hash) of a run."""


def group_key(row: Row) -> GroupKey:
    """The group of a run."""
    view = ", ".join(f"{name} {value}" for name, value in row["view"].items())
    column = (row["dataset"], view, row["metric"], row["dataset_hash"])
    return (row["method"], row["batching"]), column


def best_by_group(
    rows: Iterable[Row], seed: str = MOST_COMPLETE
) -> dict[GroupKey, CellSelection]:
    """The best configuration by validation of each group, of one seed or of any."""
    groups: dict[GroupKey, list[Row]] = {}
    for row in rows:
        groups.setdefault(group_key(row), []).append(row)
    best = {key: best_with_most_splits(group, seed) for key, group in groups.items()}
    return {key: one for key, one in best.items() if one.chosen is not None}


def all_runs_table(
    groups: Mapping[GroupKey, CellSelection],
    paths: Mapping[GraphKey, str] = NO_PATHS,
) -> Document:
    """The table of all groups; `paths` are the folders of stored graphs."""
    rows = sorted({row for row, _ in groups})
    columns = sorted({column for _, column in groups})
    labels = graph_labels([(dataset, hash) for dataset, *_, hash in columns], paths)
    selections: dict[Any, dict[Any, tuple[CellSelection, Document]]] = {}
    scores: dict[Any, dict[Any, ScoreCell]] = {row: {} for row in rows}
    for (row, column), best in groups.items():
        assert best.chosen is not None
        scores[row][column] = ScoreCell(mean=best.chosen.test, std=best.chosen.std)
        selections.setdefault(row, {})[column] = (best, {})
    return table_document(
        {"name": "all-runs", "title": "All runs", "shaded": "best"},
        {
            (method, batching): row_header(
                method if batching == FULL_BATCH else f"{method}, {batching}",
                method,
                batching,
            )
            for method, batching in rows
        },
        {
            (dataset, view, metric, hash): {
                "label": labels[dataset, hash] + (f" ({view})" if view else ""),
                "metric": metric,
            }
            for dataset, view, metric, hash in columns
        },
        scores,
        selections,
    )


def missing_cells(tables: Sequence[Document]) -> list[Document]:
    """The empty cells of tables by reason, the most frequent reason first."""
    reasons: dict[str, list[Document]] = {}
    for table in tables:
        for row, cells in zip(table["rows"], table["cells"], strict=True):
            for column, cell in zip(table["columns"], cells, strict=True):
                if cell and "missing" in cell:
                    entry = {
                        "table": table["title"],
                        "row": row["label"],
                        "column": column["label"],
                        "published": cell.get("printed_mean"),
                        "sweep": cell["sweep"],
                    }
                    reasons.setdefault(cell["missing"], []).append(entry)
    groups = [{"reason": reason, "cells": cells} for reason, cells in reasons.items()]
    return sorted(groups, key=lambda group: -len(group["cells"]))


def failed_runs(rows: Iterable[Row]) -> list[Document]:
    """Failed runs, grouped by dataset, method and error."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        key = (row["dataset"], row["method"], row["error"])
        groups.setdefault(key, []).append(row)
    return [
        {
            "dataset": dataset,
            "method": method,
            "error": error,
            "runs": len(group),
            "configs": len({row["setting"] for row in group}),
            "failed": max(row["failed"] for row in group),
        }
        for (dataset, method, error), group in sorted(groups.items())
    ]
