"""The leaderboard: a results table of the paper, ours beside the printed numbers."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence

from unalike.experiments.cookbook import Printed
from unalike.experiments.recipe import Cell, Recipe
from unalike.experiments.standing import Standing
from unalike.methods import METHODS
from unalike.reports.score import Score
from unalike.reports.scores import score, shaded, with_errors
from unalike.site.cell import Document, cell
from unalike.site.ranking import rankings

Ask = Callable[[Recipe, Cell], Standing]
"""Finds what the database holds for a cell."""


def leaderboard(table: Printed, recipes: Sequence[Recipe], ask: Ask) -> Document:
    """A table as the page draws it."""
    found = {
        recipe.row: {name: ask(recipe, one) for name, one in recipe.cells.items()}
        for recipe in recipes
    }
    scores = {
        recipe.row: {
            name: score(one, found[recipe.row][name])
            for name, one in recipe.cells.items()
        }
        for recipe in recipes
    }
    told = shaded(with_errors(scores, recipes), table.shaded)
    columns = list(dict.fromkeys(name for row in told.values() for name in row))
    return {
        "name": table.name,
        "title": table.title,
        "shaded": table.shaded,
        "rows": [heading(recipe) for recipe in recipes],
        "columns": [column(name, found) for name in columns],
        "cells": [line(recipe, told, found, columns) for recipe in recipes],
        "rankings": rankings([told[recipe.row] for recipe in recipes], columns),
    }


def heading(recipe: Recipe) -> Document:
    """What is told of a row, and what it can be filtered by."""
    return {
        "label": recipe.row,
        "method": recipe.method,
        "family": family(recipe.method),
        "batching": recipe.batching,
    }


def family(method: str | None) -> str:
    """The family of a method; of one that is not here nothing is known."""
    known = METHODS.get(method or "")
    return known.family if known else "not here"


def column(name: str, found: Mapping[str, Mapping[str, Standing]]) -> Document:
    """A dataset, with the metric of the runs on it where there are any."""
    chosen = [row[name].chosen for row in found.values() if name in row]
    metrics = {one.runs[0]["metric"] for one in chosen if one}
    return {"label": name, "metric": ", ".join(sorted(metrics))}


def line(
    recipe: Recipe,
    told: Mapping[str, Mapping[str, Score]],
    found: Mapping[str, Mapping[str, Standing]],
    columns: Sequence[str],
) -> list[Document | None]:
    """The cells of a row, one for each column."""
    cells: list[Document | None] = []
    for name in columns:
        if name not in recipe.cells:
            cells.append(None)
            continue
        at = found[recipe.row][name]
        document = cell(
            told[recipe.row][name], at.chosen, at.num_complete, at.num_wanted
        )
        cells.append({**document, "sweep": sweep_command(recipe, recipe.cells[name])})
    return cells


def sweep_command(recipe: Recipe, one: Cell) -> str | None:
    """The command that runs all settings of a cell; none for what cannot be run."""
    if not recipe.known:
        return None
    words = ["unalike", "sweep", recipe.name, "--only", f"dataset={one.dataset}"]
    return shlex.join([*words, *(["--quoted"] if one.quoted else [])])
