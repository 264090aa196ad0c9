"""Leaderboards: results tables of the paper, our numbers beside the published ones."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from unalike.datasets import find
from unalike.datasets.dataset import Dataset
from unalike.errors import UserError
from unalike.experiments.cookbook import Printed
from unalike.experiments.recipe import Cell, Recipe
from unalike.experiments.standing import Standing
from unalike.methods import METHODS
from unalike.reports.score import Score
from unalike.reports.scores import score, shaded, with_errors
from unalike.site.cell import Document, cell
from unalike.site.ranking import rankings

CellLookup = Callable[[Recipe, Cell], Standing]
"""Selects the configuration of a cell from the database."""

MAX_CLASS_HOMOPHILY = 0.35
"""Datasets above it are homophilous.

The published values of the paper's non-homophilous datasets go up to 0.272; those of
its homophilous ones start at 0.416.
"""


def leaderboard(
    table: Printed, recipes: Sequence[Recipe], lookup: CellLookup
) -> Document:
    """A results table as JSON."""
    selections = {
        recipe.row: {name: lookup(recipe, one) for name, one in recipe.cells.items()}
        for recipe in recipes
    }
    scores = {
        recipe.row: {
            name: score(one, selections[recipe.row][name])
            for name, one in recipe.cells.items()
        }
        for recipe in recipes
    }
    rows = shaded(with_errors(scores, recipes), table.shaded)
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


def column(name: str, selections: Mapping[str, Mapping[str, Standing]]) -> Document:
    """A dataset, with the metric of the runs on it where there are any."""
    selected = [row[name].chosen for row in selections.values() if name in row]
    metrics = {one.runs[0]["metric"] for one in selected if one}
    return {"label": name, "metric": ", ".join(sorted(metrics))}


def row_cells(
    recipe: Recipe,
    rows: Mapping[str, Mapping[str, Score]],
    selections: Mapping[str, Mapping[str, Standing]],
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
            selection.num_wanted,
        )
        cells.append({**document, "sweep": sweep_command(recipe, recipe.cells[name])})
    return cells


def sweep_command(recipe: Recipe, one: Cell) -> str | None:
    """The command that runs all configurations of a cell, where it can be run."""
    if not recipe.known:
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
