"""Standing: what the database holds for a cell of a results table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from unalike.datasets import find
from unalike.datasets.catalogue import at_hand
from unalike.datasets.dataset import Dataset
from unalike.errors import UserError, lookup
from unalike.experiments.recipe import Cell, Recipe
from unalike.experiments.results import Results, Row
from unalike.experiments.select import Tried, complete, select, tried
from unalike.experiments.space import Space


@dataclass(frozen=True, kw_only=True)
class Query:
    """Which settings count: those of a grid, or all that were ever tried."""

    settings: str = "grid"
    variant: str = ""
    data: Path | None = None


@dataclass(frozen=True)
class Standing:
    """The chosen setting of a cell, and how many there were to choose from."""

    chosen: Tried | None
    num_complete: int
    num_wanted: int | None
    """How many settings the grid has; None where any setting counts."""
    missing: str | None = None
    """Why nothing could be chosen."""


def standing(recipe: Recipe, cell: Cell, results: Results, query: Query) -> Standing:
    """Choose a setting for a cell by validation."""
    if not recipe.known:
        quoted = f"quoted from {cell.quoted}"
        absent = f"{recipe.method} on batches of {recipe.batching} is not here"
        return Standing(None, 0, None, absent if recipe.method else quoted)
    name = known_as(cell.dataset, query.data)
    rows = list(results.runs(dataset=name, method=str(recipe.method)))
    filtered, wanted = lookup(FILTERS, query.settings, "choice of settings")(
        recipe, cell, query, rows
    )
    splits = cell.splits or len({row["split"] for row in filtered})
    whole = complete(tried(filtered), splits)
    chosen = select(whole)
    why = None if chosen else reason(recipe, cell, results, filtered, query)
    return Standing(chosen, len(whole), wanted, why)


def of_grid(
    recipe: Recipe, cell: Cell, query: Query, rows: list[Row]
) -> tuple[list[Row], int | None]:
    """The runs whose settings are in the grid; a range holds any setting."""
    if Space.of(recipe, cell, query.variant).open:
        return of_any(recipe, cell, query, rows)
    keys = {setting.key for setting in recipe.settings(cell, query.variant)}
    return [row for row in rows if row["setting"] in keys], len(keys)


def of_any(
    recipe: Recipe, cell: Cell, query: Query, rows: list[Row]
) -> tuple[list[Row], int | None]:
    """The runs that keep to what the recipe fixes."""
    fixed = Space.of(recipe, cell, query.variant).fixed

    def fits(row: Row) -> bool:
        told = row["options"]
        same = all(told.get(name) == value for name, value in fixed.items())
        seen = (row["view"], row["batching"]) == (cell.view.changes, recipe.batching)
        return same and seen

    return [row for row in rows if fits(row)], None


FILTERS: dict[
    str, Callable[[Recipe, Cell, Query, list[Row]], tuple[list[Row], int | None]]
] = {"grid": of_grid, "any": of_any}


def known_as(dataset: str, data: Path | None) -> str:
    """The name under which results of a dataset are kept."""
    try:
        return find(dataset, data).name
    except UserError:
        return dataset


def reason(
    recipe: Recipe, cell: Cell, results: Results, rows: list[Row], query: Query
) -> str:
    """Why a cell has no complete setting."""
    if rows:
        return f"no setting has all {cell.splits} splits yet"
    name = known_as(cell.dataset, query.data)
    failures = results.failures(dataset=name, method=str(recipe.method))
    if failures:
        return f"failed: {failures[0]['error'].splitlines()[-1]}"
    if cell.quoted:
        return f"quoted from {cell.quoted}"
    try:
        source = find(cell.dataset, query.data)
    except UserError as error:
        return str(error)
    absent = isinstance(source, Dataset) and not source.ready()
    if absent and isinstance(source, Dataset) and at_hand(source) != "all":
        return f"the files of {name} are not here"
    return "not run"
