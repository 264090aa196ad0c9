"""Recipes (TOML): grid and search space of each table row, cells with published numbers."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from unalike.errors import UserError, did_you_mean, lookup
from unalike.experiments.config import (
    FULL_BATCH,
    NO_OVERRIDES,
    Config,
    DatasetOptions,
    build_method,
)
from unalike.methods import METHODS
from unalike.samplers import SAMPLERS

# Recipe: a row of a results table: what to run for it, and what the paper prints.


Grid = Mapping[str, Any]
"""Values of options by name: a list of them, or a single one."""


@dataclass(frozen=True, kw_only=True)
class RecipeCell:
    """One cell of a row: where to run, and the printed number."""

    dataset: str
    splits: int | None = None
    mean: float | None = None
    std: float | None = None
    relative_error: float | None = None
    """What the paper prints beside the mean: percent lost against the full batch."""
    limit: str | None = None
    """What kept the paper's program from trying everything: memory or time."""
    quoted: str | None = None
    """Whose number it is, where the paper took it from elsewhere."""
    view: DatasetOptions = NO_OVERRIDES
    grid: Grid = field(default_factory=dict)
    """What differs from the grid of the row."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A row: a method, its grid, and a cell for each column."""

    name: str
    row: str
    method: str | None = None
    """None where the paper quotes a method that is not here."""
    batching: str = FULL_BATCH
    grids: Sequence[Grid] = ({},)
    variants: Mapping[str, Grid] = field(default_factory=dict)
    """Other grids by name: the appendix's, where the scripts ran something else."""
    cells: Mapping[str, RecipeCell]

    @property
    def is_implemented(self) -> bool:
        """Are its method and batching here?"""
        return self.method in METHODS and self.batching in SAMPLERS

    def grids_of(
        self, cell: RecipeCell, variant: str = ""
    ) -> list[dict[str, list[Any]]]:
        """The values to try in a cell, as lists, grid by grid."""
        other = self.variants.get(variant, {})
        return [
            {
                name: as_list(value)
                for name, value in {**g, **cell.grid, **other}.items()
            }
            for g in self.grids
        ]

    def configs(self, cell: RecipeCell, variant: str = "") -> Iterator[Config]:
        """Every setting of a cell, in the order of its lists."""
        if self.method is None:
            return
        for grid in self.grids_of(cell, variant):
            for name, values in grid.items():
                if any(isinstance(value, Mapping) for value in values):
                    raise UserError(
                        f"{self.name} has a range for {name}: it can be searched "
                        "(--search optuna) but not listed."
                    )
            for values_chosen in product(*grid.values()):
                yield self.config(cell, dict(zip(grid, values_chosen, strict=True)))

    def config(self, cell: RecipeCell, chosen: Mapping[str, Any]) -> Config:
        """One setting of a cell, with some options."""
        cut = {"batching": self.batching} if self.batching != FULL_BATCH else {}
        return Config(build_method(str(self.method), {**cut, **chosen}), cell.view)

    def with_overrides(self, options: Grid) -> Recipe:
        """The same row with some options as told, whatever its grid says of them."""
        return replace(
            self,
            variants={n: {**grid, **options} for n, grid in self.variants.items()},
            cells={
                key: replace(cell, grid={**cell.grid, **options})
                for key, cell in self.cells.items()
            },
        )

    def on_datasets(self, datasets: Sequence[str]) -> Recipe:
        """The same row with the grid of its first cell on other datasets."""
        first = next(iter(self.cells.values()))
        cells = {
            name: RecipeCell(dataset=name, splits=first.splits, grid=first.grid)
            for name in datasets
        }
        return replace(self, cells=cells)


def as_list(value: Any) -> list[Any]:
    """The values of an option, of which a file may tell just one."""
    return value if isinstance(value, list) else [value]


def parse(text: str, name: str) -> Recipe:
    """A recipe from its TOML text."""
    try:
        told = tomllib.loads(text)
        cells = {
            key: _cell(key, told, facts) for key, facts in told.pop("cells").items()
        }
        told.pop("splits", None), told.pop("quoted", None)
        grids = as_list(told.pop("grid", {}))
        return Recipe(name=name, **{"row": name, **told}, grids=grids, cells=cells)
    except (tomllib.TOMLDecodeError, TypeError, KeyError, AttributeError) as error:
        raise UserError(f"{name} is not a recipe: {error}.") from None


def _cell(key: str, row: Mapping[str, Any], facts: dict[str, Any]) -> RecipeCell:
    shared = {name: row[name] for name in ("splits", "quoted") if name in row}
    seen = {n: facts.pop(n) for n in ("metric", "both_ways") if n in facts}
    return RecipeCell(
        **{"dataset": key, **shared, **facts}, view=DatasetOptions(**seen)
    )


# Space: the options that a recipe fixes for a cell, and those it varies.


@dataclass(frozen=True)
class SearchSpace:
    """The options of a cell: those that are fixed, and those to be searched."""

    fixed: Mapping[str, Any]
    searched: Mapping[str, list[Any]]

    @classmethod
    def of(cls, recipe: Recipe, cell: RecipeCell, variant: str) -> SearchSpace:
        """The values of all grids of a cell together."""
        values: dict[str, list[Any]] = {}
        for grid in recipe.grids_of(cell, variant):
            for name, some in grid.items():
                known = values.setdefault(name, [])
                known += [value for value in some if value not in known]
        free = {name: told for name, told in values.items() if is_searched(told)}
        fixed = {name: told[0] for name, told in values.items() if name not in free}
        return cls(fixed, free)

    @property
    def has_range(self) -> bool:
        """Is there a range, of which no list tells every value?"""
        return any(isinstance(told[0], Mapping) for told in self.searched.values())


def is_searched(values: list[Any]) -> bool:
    """Is there something to choose from?"""
    return len(values) > 1 or isinstance(values[0], Mapping)


def grid_size(recipe: Recipe) -> int | None:
    """How many settings a row tries at most; None where it has ranges, or no method."""
    cells = recipe.cells.values()
    if recipe.method is None or any(
        SearchSpace.of(recipe, c, "").has_range for c in cells
    ):
        return None
    return max(
        sum(prod(map(len, grid.values())) for grid in recipe.grids_of(cell))
        for cell in cells
    )


# The cookbook: the recipes of every results table of the paper.


@dataclass(frozen=True)
class PaperTable:
    """A results table of the paper: its title, its rows, and how it is shaded."""

    name: str
    title: str
    shaded: str
    rows: Sequence[str]

    def recipes(self) -> list[Recipe]:
        """The recipes of its rows."""
        return [
            parse(
                (_recipes_dir() / self.name / f"{row}.toml").read_text("utf-8"),
                f"{self.name}/{row}",
            )
            for row in self.rows
        ]


def paper_tables() -> dict[str, PaperTable]:
    """Every results table by name."""
    folders = sorted(entry.name for entry in _recipes_dir().iterdir() if entry.is_dir())
    return {name: _table(name) for name in folders}


def _table(name: str) -> PaperTable:
    about = tomllib.loads((_recipes_dir() / name / "table.toml").read_text("utf-8"))
    return PaperTable(name, **about)


def _recipes_dir() -> Traversable:
    return files("unalike") / "recipes"


def find_recipes(names: Sequence[str]) -> list[Recipe]:
    """Recipes by the name of their table, table/row, or the path of a file."""
    found: dict[str, Recipe] = {}
    for name in names:
        for recipe in _named(name):
            found.setdefault(recipe.name, recipe)
    return list(found.values())


def _named(name: str) -> list[Recipe]:
    if name.endswith(".toml"):
        try:
            return [parse(Path(name).read_text("utf-8"), Path(name).stem)]
        except OSError as error:
            raise UserError(f"{name}: {error.strerror}.") from None
    tables = paper_tables()
    table, _, row = name.partition("/")
    if table not in tables:
        rows = [
            f"{table.name}/{row}" for table in tables.values() for row in table.rows
        ]
        hint = did_you_mean(name, (*tables, *rows))
        raise UserError(f"No recipe '{name}'.{hint} `unalike list recipes` names them.")
    recipes = tables[table].recipes()
    known = {recipe.name: recipe for recipe in recipes}
    return [lookup(known, name, "recipe")] if row else recipes


def list_recipes() -> list[dict[str, Any]]:
    """What lists tell of every recipe."""
    return [
        {
            "name": recipe.name,
            "row": recipe.row,
            "method": recipe.method or "",
            "batching": recipe.batching,
            "settings": grid_size(recipe),
            "variants": ", ".join(recipe.variants),
            "datasets": ", ".join(recipe.cells),
            "quoted": {
                n: cell.quoted for n, cell in recipe.cells.items() if cell.quoted
            },
            "printed": {n: cell.mean for n, cell in recipe.cells.items()},
        }
        for table in paper_tables().values()
        for recipe in table.recipes()
    ]
