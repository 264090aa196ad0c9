"""Best configuration by validation score, for a list of runs or for a table cell."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

from unalike.datasets import find
from unalike.datasets.base import Dataset
from unalike.datasets.registry import raw_files_status
from unalike.errors import UserError, lookup
from unalike.experiments.database import ResultsDatabase, Row
from unalike.experiments.recipe import Recipe, RecipeCell, SearchSpace

# Select: the best setting by validation alone, and what it does on the test nodes.


@dataclass(frozen=True, eq=False)
class ConfigRuns:
    """A setting with all its runs on one version of a dataset."""

    setting: str
    runs: list[Row]

    @property
    def valid(self) -> float:
        return mean(row["valid"] for row in self.runs)

    @property
    def test(self) -> float:
        return mean(row["test"] for row in self.runs)

    @property
    def std(self) -> float | None:
        """The sample standard deviation over the splits."""
        tests = [row["test"] for row in self.runs]
        return stdev(tests) if len(tests) > 1 else None


def group_by_config(
    rows: Iterable[Row], wanted: Collection[str] | None = None
) -> list[ConfigRuns]:
    """Runs put together by setting; those that are wanted, or all."""
    groups: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        if wanted is None or row["setting"] in wanted:
            place = (row["dataset_hash"], row["setting"], row["seed"])
            groups.setdefault(place, []).append(row)
    return [ConfigRuns(setting, runs) for (_, setting, _), runs in groups.items()]


def with_all_splits(settings: Iterable[ConfigRuns], splits: int) -> list[ConfigRuns]:
    """Those of which every split was run."""
    return [
        one for one in settings if {r["split"] for r in one.runs} >= set(range(splits))
    ]


def best_by_validation(settings: Iterable[ConfigRuns]) -> ConfigRuns | None:
    """The one with the highest mean validation grade; test grades play no part.

    The key decides between equals, so that the order of the runs does not.
    """
    return max(settings, key=lambda one: (one.valid, one.setting), default=None)


# Standing: what the database holds for a cell of a results table.


@dataclass(frozen=True, kw_only=True)
class SelectionOptions:
    """Which settings count: those of a grid, or all that were ever tried."""

    settings: str = "grid"
    variant: str = ""
    data: Path | None = None


@dataclass(frozen=True)
class CellSelection:
    """The chosen setting of a cell, and how many there were to choose from."""

    chosen: ConfigRuns | None
    num_complete: int
    grid_size: int | None
    """How many settings the grid has; None where any setting counts."""
    missing: str | None = None
    """Why nothing could be chosen."""


def select_for_cell(
    recipe: Recipe, cell: RecipeCell, results: ResultsDatabase, query: SelectionOptions
) -> CellSelection:
    """Choose a setting for a cell by validation."""
    if not recipe.is_implemented:
        quoted = f"quoted from {cell.quoted}"
        absent = f"{recipe.method} on batches of {recipe.batching} is not here"
        return CellSelection(None, 0, None, absent if recipe.method else quoted)
    name = stored_name(cell.dataset, query.data)
    rows = list(results.runs(dataset=name, method=str(recipe.method)))
    filtered, wanted = lookup(FILTERS, query.settings, "choice of settings")(
        recipe, cell, query, rows
    )
    splits = cell.splits or len({row["split"] for row in filtered})
    whole = with_all_splits(group_by_config(filtered), splits)
    chosen = best_by_validation(whole)
    why = None if chosen else why_missing(recipe, cell, results, filtered, query)
    return CellSelection(chosen, len(whole), wanted, why)


def runs_in_grid(
    recipe: Recipe, cell: RecipeCell, query: SelectionOptions, rows: list[Row]
) -> tuple[list[Row], int | None]:
    """The runs whose settings are in the grid; a range holds any setting."""
    if SearchSpace.of(recipe, cell, query.variant).has_range:
        return runs_with_fixed_options(recipe, cell, query, rows)
    keys = {setting.hash for setting in recipe.configs(cell, query.variant)}
    return [row for row in rows if row["setting"] in keys], len(keys)


def runs_with_fixed_options(
    recipe: Recipe, cell: RecipeCell, query: SelectionOptions, rows: list[Row]
) -> tuple[list[Row], int | None]:
    """The runs that keep to what the recipe fixes."""
    fixed = SearchSpace.of(recipe, cell, query.variant).fixed

    def fits(row: Row) -> bool:
        told = row["options"]
        same = all(told.get(name) == value for name, value in fixed.items())
        seen = (row["view"], row["batching"]) == (cell.view.overrides, recipe.batching)
        return same and seen

    return [row for row in rows if fits(row)], None


FILTERS: dict[
    str,
    Callable[
        [Recipe, RecipeCell, SelectionOptions, list[Row]], tuple[list[Row], int | None]
    ],
] = {"grid": runs_in_grid, "any": runs_with_fixed_options}


def stored_name(dataset: str, data: Path | None) -> str:
    """The name under which results of a dataset are kept."""
    try:
        return find(dataset, data).name
    except UserError:
        return dataset


def why_missing(
    recipe: Recipe,
    cell: RecipeCell,
    results: ResultsDatabase,
    rows: list[Row],
    query: SelectionOptions,
) -> str:
    """Why a cell has no complete setting."""
    if rows:
        return f"no setting has all {cell.splits} splits yet"
    name = stored_name(cell.dataset, query.data)
    failures = results.failures(dataset=name, method=str(recipe.method))
    if failures:
        return f"failed: {failures[0]['error'].splitlines()[-1]}"
    if cell.quoted:
        return f"quoted from {cell.quoted}"
    try:
        source = find(cell.dataset, query.data)
    except UserError as error:
        return str(error)
    absent = isinstance(source, Dataset) and not source.cached()
    if absent and isinstance(source, Dataset) and raw_files_status(source) != "all":
        return f"the files of {name} are not here"
    return "not run"
