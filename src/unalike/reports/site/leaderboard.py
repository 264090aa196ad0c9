"""Leaderboards, table of all runs, missing cells and failures as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
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
    CellSelection,
    ConfigRuns,
    best_by_validation,
    group_by_config,
)
from unalike.methods import METHODS
from unalike.reports.result_tables import (
    highlight_best,
    score_cell,
    with_relative_errors,
)
from unalike.reports.site.documents import DIGITS, Document, config_id, method_runs_id
from unalike.reports.tables import ScoreCell

# Cells of a leaderboard, with the ids of the runs behind each number.


def cell(
    score: ScoreCell, selected: ConfigRuns | None, configs: int, grid_size: int | None
) -> Document:
    """A cell as JSON, without the keys that have no value."""
    document = {**score.to_dict, **provenance(selected)}
    if selected:
        document |= {"configs": configs, "grid_size": grid_size}
    return {
        name: round_floats(value)
        for name, value in document.items()
        if value is not None and value is not False
    }


def provenance(selected: ConfigRuns | None) -> Document:
    """The number of runs of a selected configuration, their cost and their ids."""
    if selected is None:
        return {}
    first = selected.runs[0]
    return {
        "runs": len(selected.runs),
        "valid": selected.valid,
        **mean_cost(selected),
        "method_runs": method_runs_id(first["dataset"], first["method"]),
        "config": config_id(first),
    }


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


# Ranking: the rows of a table from the best to the worst, column by column.


def rankings(
    rows: Sequence[Mapping[str, ScoreCell]], columns: Sequence[str]
) -> list[list[int]]:
    """The places of the rows that have a number, for each column."""
    return [ranking([row.get(column) for row in rows]) for column in columns]


def ranking(scores: Sequence[ScoreCell | None]) -> list[int]:
    """The best first; the earlier among equals.

    The printed number stands in where there is none of ours.
    """
    values = {
        place: score.value[0]
        for place, score in enumerate(scores)
        if score is not None and score.value is not None
    }
    return sorted(values, key=lambda place: (-values[place], place))


# Leaderboards: results tables of the paper, our numbers beside the published ones.


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
        recipe.row: {name: lookup(recipe, one) for name, one in recipe.cells.items()}
        for recipe in recipes
    }
    scores = {
        recipe.row: {
            name: score_cell(one, selections[recipe.row][name])
            for name, one in recipe.cells.items()
        }
        for recipe in recipes
    }
    rows = highlight_best(with_relative_errors(scores, recipes), table.shaded)
    columns = list(dict.fromkeys(name for row in rows.values() for name in row))
    return {
        "name": table.name,
        "title": table.title,
        "shaded": table.shaded,
        "rows": [row_header(recipe) for recipe in recipes],
        "columns": [column(name, selections) for name in columns],
        "cells": [row_cells(recipe, rows, selections, columns) for recipe in recipes],
        "rankings": rankings([rows[recipe.row] for recipe in recipes], columns),
    }


def row_header(recipe: Recipe) -> Document:
    """The label of a row and the keys that filter it."""
    return {
        "label": recipe.row,
        "method": recipe.method,
        "family": method_family(recipe.method),
        "batching": recipe.batching,
    }


def method_family(method: str | None) -> str:
    """The family of a method."""
    known = METHODS.get(method or "")
    return known.family if known else "not implemented"


def column(
    name: str, selections: Mapping[str, Mapping[str, CellSelection]]
) -> Document:
    """A dataset, with the metric of the runs on it where there are any."""
    selected = [row[name].chosen for row in selections.values() if name in row]
    metrics = {one.runs[0]["metric"] for one in selected if one}
    return {"label": name, "metric": ", ".join(sorted(metrics))}


def row_cells(
    recipe: Recipe,
    rows: Mapping[str, Mapping[str, ScoreCell]],
    selections: Mapping[str, Mapping[str, CellSelection]],
    columns: Sequence[str],
) -> list[Document | None]:
    """The cells of a row, one for each column."""
    cells: list[Document | None] = []
    for name in columns:
        if name not in recipe.cells:
            cells.append(None)
            continue
        selection = selections[recipe.row][name]
        document = cell(
            rows[recipe.row][name],
            selection.chosen,
            selection.num_complete,
            selection.grid_size,
        )
        cells.append({**document, "sweep": sweep_command(recipe, recipe.cells[name])})
    return cells


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
    names = {one.dataset for recipe in recipes for one in recipe.cells.values()}
    return all(class_homophily(name, data) <= MAX_CLASS_HOMOPHILY for name in names)


def class_homophily(name: str, data: Path | None) -> float:
    """The published class homophily of a dataset; 0 where none is known."""
    try:
        dataset = find(name, data)
    except UserError:
        return 0.0
    if not isinstance(dataset, Dataset):
        return 0.0
    return dataset.published.class_homophily or 0.0


# The table of all runs, whatever their configuration.


SHADED = "best"


@dataclass(frozen=True, order=True)
class RunGroupKey:
    """The row and the column of a run."""

    dataset: str
    view: str
    metric: str
    method: str
    batching: str

    @classmethod
    def of(cls, row: Row) -> RunGroupKey:
        """The group of a run."""
        view = ", ".join(f"{name} {value}" for name, value in row["view"].items())
        return cls(row["dataset"], view, row["metric"], row["method"], row["batching"])

    @property
    def row(self) -> tuple[str, str]:
        return self.method, self.batching

    @property
    def column(self) -> tuple[str, str, str]:
        return self.dataset, self.view, self.metric


@dataclass(frozen=True, eq=False)
class BestConfig:
    """The selected configuration of a group, and the number it was selected from."""

    selected: ConfigRuns
    num_configs: int


def best_by_group(rows: Iterable[Row]) -> dict[RunGroupKey, BestConfig]:
    """The best configuration by validation of each group."""
    groups: dict[RunGroupKey, list[Row]] = {}
    for row in rows:
        groups.setdefault(RunGroupKey.of(row), []).append(row)
    return {key: best_of_group(group) for key, group in groups.items()}


def best_of_group(rows: list[Row]) -> BestConfig:
    """The best of the configurations that have the most splits."""
    configs = group_by_config(rows)
    most = max(len(one.runs) for one in configs)
    complete = [one for one in configs if len(one.runs) == most]
    selected = best_by_validation(complete)
    assert selected is not None
    return BestConfig(selected, len(complete))


def all_runs_table(groups: Mapping[RunGroupKey, BestConfig]) -> Document:
    """The table of all groups."""
    rows = sorted({key.row for key in groups})
    columns = sorted({key.column for key in groups})
    best = {(key.row, key.column): one for key, one in groups.items()}
    scores = {
        str(row): {str(column): score(best.get((row, column))) for column in columns}
        for row in rows
    }
    marked = highlight_best(scores, SHADED) if scores else {}
    return {
        "name": "all-runs",
        "title": "All runs",
        "shaded": SHADED,
        "rows": [group_header(*row) for row in rows],
        "columns": [
            {"label": label(*column), "metric": column[2]} for column in columns
        ],
        "cells": [
            [
                group_cell(marked[str(row)][str(column)], best.get((row, column)))
                for column in columns
            ]
            for row in rows
        ],
        "rankings": rankings(
            [marked[str(row)] for row in rows], [str(one) for one in columns]
        ),
    }


def group_header(method: str, batching: str) -> Document:
    """The label of a row and the keys that filter it."""
    return {
        "label": method if batching == FULL_BATCH else f"{method}, {batching}",
        "method": method,
        "family": method_family(method),
        "batching": batching,
    }


def label(dataset: str, view: str, metric: str) -> str:
    """The label of a column."""
    return f"{dataset} ({view})" if view else dataset


def score(best: BestConfig | None) -> ScoreCell:
    """The score of a group; an empty one without runs."""
    if best is None:
        return ScoreCell()
    return ScoreCell(mean=best.selected.test, std=best.selected.std)


def group_cell(marked: ScoreCell, best: BestConfig | None) -> Document | None:
    """The cell of a group that has runs."""
    return cell(marked, best.selected, best.num_configs, None) if best else None


# Table cells without a number of ours, and runs that failed.


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
