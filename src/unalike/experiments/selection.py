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


@dataclass(frozen=True, eq=False)
class ConfigRuns:
    """The runs of one configuration and seed on one version of a dataset."""

    setting: str
    """The hash of the configuration."""
    runs: list[Row]

    @property
    def valid(self) -> float:
        """The mean validation score over the splits."""
        return mean(row["valid"] for row in self.runs)

    @property
    def test(self) -> float:
        """The mean test score over the splits."""
        return mean(row["test"] for row in self.runs)

    @property
    def std(self) -> float | None:
        """The sample standard deviation of the test scores over the splits."""
        tests = [row["test"] for row in self.runs]
        return stdev(tests) if len(tests) > 1 else None


def best_by_validation(configs: Iterable[ConfigRuns]) -> ConfigRuns | None:
    """The configuration with the highest mean validation score.

    Ties are broken by the hash, so that the order of the runs does not matter.
    """
    return max(configs, key=lambda one: (one.valid, one.setting), default=None)


def group_by_config(
    rows: Iterable[Row], settings: Collection[str] | None = None
) -> list[ConfigRuns]:
    """Group runs by configuration; all, or those with the given hashes."""
    groups: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        if settings is None or row["setting"] in settings:
            key = (row["dataset_hash"], row["setting"], row["seed"])
            groups.setdefault(key, []).append(row)
    return [ConfigRuns(setting, runs) for (_, setting, _), runs in groups.items()]


def with_all_splits(configs: Iterable[ConfigRuns], splits: int) -> list[ConfigRuns]:
    """The configurations with a run on each of the first splits."""
    return [
        one for one in configs if {r["split"] for r in one.runs} >= set(range(splits))
    ]


# Selection for a cell of a results table


@dataclass(frozen=True, kw_only=True)
class SelectionOptions:
    """Which runs count for a cell: those of a grid, or any that were stored."""

    settings: str = "grid"
    variant: str = ""
    data: Path | None = None


@dataclass(frozen=True)
class CellSelection:
    """The best configuration of a cell, and among how many it was selected."""

    chosen: ConfigRuns | None
    num_complete: int
    grid_size: int | None
    """Number of configurations of the grid; None if any configuration counts."""
    missing: str | None = None
    """Why no configuration could be selected."""


def select_for_cell(
    recipe: Recipe,
    cell: RecipeCell,
    results: ResultsDatabase,
    options: SelectionOptions,
) -> CellSelection:
    """Select the best complete configuration of a cell by validation score."""
    if not recipe.is_implemented:
        quoted = f"quoted from {cell.quoted}"
        missing = f"{recipe.method} on batches of {recipe.batching} is not here"
        return CellSelection(None, 0, None, missing if recipe.method else quoted)
    name = stored_name(cell.dataset, options.data)
    rows = list(results.runs(dataset=name, method=str(recipe.method)))
    filter_runs = lookup(FILTERS, options.settings, "choice of settings")
    filtered, grid_size = filter_runs(recipe, cell, options, rows)
    splits = cell.splits or len({row["split"] for row in filtered})
    complete = with_all_splits(group_by_config(filtered), splits)
    chosen = best_by_validation(complete)
    reason = None if chosen else why_missing(recipe, cell, results, filtered, options)
    return CellSelection(chosen, len(complete), grid_size, reason)


def runs_in_grid(
    recipe: Recipe, cell: RecipeCell, options: SelectionOptions, rows: list[Row]
) -> tuple[list[Row], int | None]:
    """The runs of the grid and its size; a grid with ranges has no size."""
    if SearchSpace.of(recipe, cell, options.variant).has_range:
        return runs_with_fixed_options(recipe, cell, options, rows)
    hashes = {config.hash for config in recipe.configs(cell, options.variant)}
    return [row for row in rows if row["setting"] in hashes], len(hashes)


def runs_with_fixed_options(
    recipe: Recipe, cell: RecipeCell, options: SelectionOptions, rows: list[Row]
) -> tuple[list[Row], int | None]:
    """The runs with the options that the recipe fixes."""
    fixed = SearchSpace.of(recipe, cell, options.variant).fixed
    view_and_batching = (cell.view.overrides, recipe.batching)

    def matches(row: Row) -> bool:
        values = row["options"]
        same = all(values.get(name) == value for name, value in fixed.items())
        return same and (row["view"], row["batching"]) == view_and_batching

    return [row for row in rows if matches(row)], None


FILTERS: dict[
    str,
    Callable[
        [Recipe, RecipeCell, SelectionOptions, list[Row]], tuple[list[Row], int | None]
    ],
] = {"grid": runs_in_grid, "any": runs_with_fixed_options}


def stored_name(dataset: str, data: Path | None) -> str:
    """The name under which results of a dataset are stored."""
    try:
        return find(dataset, data).name
    except UserError:
        return dataset


def why_missing(
    recipe: Recipe,
    cell: RecipeCell,
    results: ResultsDatabase,
    rows: list[Row],
    options: SelectionOptions,
) -> str:
    """Why a cell has no complete configuration."""
    if rows:
        return f"no setting has all {cell.splits} splits yet"
    name = stored_name(cell.dataset, options.data)
    failures = results.failures(dataset=name, method=str(recipe.method))
    if failures:
        return f"failed: {failures[0]['error'].splitlines()[-1]}"
    if cell.quoted:
        return f"quoted from {cell.quoted}"
    try:
        source = find(cell.dataset, options.data)
    except UserError as error:
        return str(error)
    if not isinstance(source, Dataset) or source.cached():
        return "not run"
    complete = raw_files_status(source) == "all"
    return "not run" if complete else f"the files of {name} are not here"
