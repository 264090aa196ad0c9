"""Choice: where a number of a results table comes from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from unalike.errors import UserError, did_you_mean
from unalike.experiments.recipe import Cell, Recipe
from unalike.experiments.record import result_of
from unalike.experiments.result import command
from unalike.experiments.results import Results
from unalike.experiments.setting import revived
from unalike.experiments.standing import Query, Standing, standing

TOLD = ("split", "train", "valid", "test", "best_epoch", "seconds", "device", "commit")


def choices(
    recipes: Sequence[Recipe], asked: tuple[str, str], results: Results, query: Query
) -> list[dict[str, Any]]:
    """The chosen setting of every cell of a method and a dataset, with its runs."""
    found = list(_cells(recipes, *asked))
    if not found:
        known = {name for recipe in recipes for name in _names(recipe)}
        known |= {column for recipe in recipes for column in recipe.cells}
        hint = "".join(did_you_mean(word, known) for word in asked if word not in known)
        raise UserError(f"The table has no cell {asked[0]} {asked[1]}.{hint}")
    return [
        choice(recipe, column, cell, standing(recipe, cell, results, query))
        for recipe, column, cell in found
    ]


def choice(recipe: Recipe, column: str, cell: Cell, found: Standing) -> dict[str, Any]:
    """All about one number."""
    told: dict[str, Any] = {
        "row": recipe.row,
        "column": column,
        "printed": cell.mean,
        "settings": found.num_complete,
        "of": found.num_wanted,
    }
    if found.chosen is None:
        return {**told, "missing": found.missing}
    rows = found.chosen.runs
    splits = ",".join(str(row["split"]) for row in rows)
    return {
        **told,
        "setting": revived(rows[0]).words(),
        "options": {**rows[0]["options"], **rows[0]["view"]},
        "valid": found.chosen.valid,
        "test": found.chosen.test,
        "std": found.chosen.std,
        "command": command(result_of(rows[0]), splits=splits),
        "runs": [{name: row[name] for name in ("key", *TOLD)} for row in rows],
    }


def _names(recipe: Recipe) -> set[str]:
    return {recipe.row, recipe.name.rpartition("/")[2], str(recipe.method)}


def _cells(
    recipes: Sequence[Recipe], method: str, dataset: str
) -> Iterator[tuple[Recipe, str, Cell]]:
    for recipe in recipes:
        for column, cell in recipe.cells.items():
            if method in _names(recipe) and dataset in (column, cell.dataset):
                yield recipe, column, cell
