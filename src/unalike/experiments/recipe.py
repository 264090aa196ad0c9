"""Recipes in TOML: grid, search space and published numbers of each table row."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib.resources import files
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

FOLDER = files("unalike") / "recipes"
"""A folder for each table of the paper, with a recipe for each row."""
Grid = Mapping[str, Any]
"""Values of options by name: a list of values, or a single one."""


@dataclass(frozen=True, kw_only=True)
class RecipeCell:
    """One cell of a table row: a dataset and the number that the paper prints."""

    dataset: str
    splits: int | None = None
    mean: float | None = None
    std: float | None = None
    relative_error: float | None = None
    """Percent lost against the full batch, where the paper prints it."""
    limit: str | None = None
    """Why the paper's grid is incomplete: memory or time."""
    quoted: str | None = None
    """The source of a number that the paper quotes from another paper."""
    view: DatasetOptions = NO_OVERRIDES
    grid: Grid = field(default_factory=dict)
    """Options that replace those of the row's grid."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One table row: a method, its grid, and a cell for each column."""

    name: str
    row: str
    method: str | None = None
    """None if the paper quotes a method that unalike does not have."""
    batching: str = FULL_BATCH
    grids: Sequence[Grid] = ({},)
    variants: Mapping[str, Grid] = field(default_factory=dict)
    """Other grids by name: the appendix's, where the authors' scripts differ."""
    cells: Mapping[str, RecipeCell]

    @property
    def is_implemented(self) -> bool:
        """Whether unalike has its method and batching."""
        return self.method in METHODS and self.batching in SAMPLERS

    def grids_of(
        self, cell: RecipeCell, variant: str = ""
    ) -> list[dict[str, list[Any]]]:
        """The values of every option in a cell, one dictionary per grid."""
        overrides = {**cell.grid, **self.variants.get(variant, {})}
        return [
            {name: as_list(value) for name, value in {**grid, **overrides}.items()}
            for grid in self.grids
        ]

    def configs(self, cell: RecipeCell, variant: str = "") -> Iterator[Config]:
        """All configurations of a cell, in the order of its lists."""
        if self.method is None:
            return
        for grid in self.grids_of(cell, variant):
            for name, values in grid.items():
                if any(isinstance(value, Mapping) for value in values):
                    raise UserError(
                        f"{self.name} has a range for {name}: it can be searched "
                        "(--search optuna) but not listed."
                    )
            for combination in product(*grid.values()):
                yield self.config(cell, dict(zip(grid, combination, strict=True)))

    def config(self, cell: RecipeCell, options: Mapping[str, Any]) -> Config:
        batching = {"batching": self.batching} if self.batching != FULL_BATCH else {}
        method = build_method(str(self.method), {**batching, **options})
        return Config(method, cell.view)

    def with_overrides(self, options: Grid) -> Recipe:
        """The same row with some options set in all of its grids."""
        cells = {
            key: replace(cell, grid={**cell.grid, **options})
            for key, cell in self.cells.items()
        }
        variants = {name: {**grid, **options} for name, grid in self.variants.items()}
        return replace(self, variants=variants, cells=cells)

    def on_datasets(self, datasets: Sequence[str]) -> Recipe:
        """The same row with the grid of its first cell on other datasets."""
        first = next(iter(self.cells.values()))
        cells = {
            name: RecipeCell(
                dataset=name,
                splits=first.splits,
                grid=first.grid,
                view=DatasetOptions(label_inputs=first.view.label_inputs),
            )
            for name in datasets
        }
        return replace(self, cells=cells)


def as_list(value: Any) -> list[Any]:
    """The values of an option; a recipe may contain a single one without a list."""
    return value if isinstance(value, list) else [value]


def parse(text: str, name: str) -> Recipe:
    """Parse a recipe from TOML."""
    try:
        row = tomllib.loads(text)
        cells = {
            key: _cell(key, row, values) for key, values in row.pop("cells").items()
        }
        for shared in ("splits", "quoted", *DATASET_OPTIONS):
            row.pop(shared, None)
        grids = as_list(row.pop("grid", {}))
        recipe = Recipe(name=name, **{"row": name, **row}, grids=grids, cells=cells)
        _check_types(recipe)
        return recipe
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise UserError(f"{name} is not a recipe: {error}.") from None


TEXT, NUMBER, TABLE = (str,), (int, float), (dict,)
FIELD_TYPES: dict[type, dict[str, tuple[type, ...]]] = {
    Recipe: {"row": TEXT, "method": TEXT, "batching": TEXT, "variants": TABLE},
    RecipeCell: {
        "dataset": TEXT,
        "splits": (int,),
        "mean": NUMBER,
        "std": NUMBER,
        "relative_error": NUMBER,
        "limit": TEXT,
        "quoted": TEXT,
        "grid": TABLE,
    },
}
"""Types of the values in a recipe; None stands for a missing one."""


def _check_types(recipe: Recipe) -> None:
    """Raise a `ValueError` if a value of a recipe has a wrong type."""
    for part in (recipe, *recipe.cells.values()):
        for name, types in FIELD_TYPES[type(part)].items():
            value = getattr(part, name)
            if value is not None and (
                not isinstance(value, types) or isinstance(value, bool)
            ):
                raise ValueError(f"{name} is {str(value)[:40]!r}")
    for grid in (*recipe.grids, *recipe.variants.values()):
        if not isinstance(grid, dict) or [] in grid.values():
            raise ValueError(f"a grid is {str(grid)[:40]!r}, not a table of values")
    if not recipe.cells:
        raise ValueError("it has no cells")


DATASET_OPTIONS = [one.name for one in fields(DatasetOptions)]
"""Dataset options that a recipe may set, for the row or for a cell."""


def _cell(key: str, row: Mapping[str, Any], values: dict[str, Any]) -> RecipeCell:
    shared = {name: row[name] for name in ("splits", "quoted") if name in row}
    values = {**{name: row[name] for name in DATASET_OPTIONS if name in row}, **values}
    names = [name for name in DATASET_OPTIONS if name in values]
    options = DatasetOptions(**{name: values.pop(name) for name in names})
    return RecipeCell(**{"dataset": key, **shared, **values}, view=options)


# Search space of a cell


@dataclass(frozen=True)
class SearchSpace:
    """The options of a cell: fixed values, and values or ranges to search."""

    fixed: Mapping[str, Any]
    searched: Mapping[str, list[Any]]

    @classmethod
    def of(cls, recipe: Recipe, cell: RecipeCell, variant: str) -> SearchSpace:
        """The union of all grids of a cell."""
        union: dict[str, list[Any]] = {}
        for grid in recipe.grids_of(cell, variant):
            for name, values in grid.items():
                merged = union.setdefault(name, [])
                merged += [value for value in values if value not in merged]
        searched = {
            name: values
            for name, values in union.items()
            if len(values) > 1 or isinstance(values[0], Mapping)
        }
        fixed = {name: vals[0] for name, vals in union.items() if name not in searched}
        return cls(fixed, searched)

    @property
    def has_range(self) -> bool:
        """Whether an option has a range of values instead of a list."""
        return any(isinstance(values[0], Mapping) for values in self.searched.values())

    def contains(self, params: Mapping[str, Any]) -> bool:
        """Whether each searched option has a value that a search may propose."""
        return all(
            is_proposed(values, params[name]) for name, values in self.searched.items()
        )


def is_proposed(values: list[Any], value: Any) -> bool:
    """Whether a value is between the numbers of an option, or one of its names."""
    if isinstance(values[0], Mapping):
        low, high = values[0]["low"], values[0]["high"]
    elif any(isinstance(one, bool | str) for one in values):
        return value in values
    else:
        low, high = min(values), max(values)
    return not isinstance(value, bool | str) and bool(low <= value <= high)


def grid_size(recipe: Recipe) -> int | None:
    """The largest grid of a row; None for a row with ranges or without a method."""
    cells = recipe.cells.values()
    spaces = (SearchSpace.of(recipe, cell, "") for cell in cells)
    if recipe.method is None or any(space.has_range for space in spaces):
        return None
    return max(
        sum(prod(map(len, grid.values())) for grid in recipe.grids_of(cell))
        for cell in cells
    )


# Recipes of results tables


@dataclass(frozen=True)
class PaperTable:
    """A results table: its title, the rows of its methods and how it is shown."""

    name: str
    title: str
    shaded: str
    rows: Sequence[str]
    daggers: Sequence[str] = ()
    """Datasets that the paper marks: GraphSAINT is evaluated on ten random parts."""
    by_dataset: bool = False
    """One line per dataset, in which quoted numbers name their source, instead of one
    per method."""
    settings: str = "grid"
    """Select among the settings of the grid, or any that has results."""
    legend: str = ""
    """What the numbers are, with {} for the highlighting rule; empty: as in the
    paper's tables."""
    notes: Sequence[str] = ()
    """What a reader must know to compare the numbers."""

    def recipes(self) -> list[Recipe]:
        return [
            parse((FOLDER / f"{name}.toml").read_text("utf-8"), name)
            for name in (f"{self.name}/{row}" for row in self.rows)
        ]


def paper_tables() -> dict[str, PaperTable]:
    """All results tables by name."""
    tables = {}
    for name in sorted(entry.name for entry in FOLDER.iterdir() if entry.is_dir()):
        text = (FOLDER / name / "table.toml").read_text("utf-8")
        tables[name] = PaperTable(name, **tomllib.loads(text))
    return tables


def find_recipes(names: Sequence[str]) -> list[Recipe]:
    """Find recipes by table, by table/row, or by the path of a TOML file."""
    recipes: dict[str, Recipe] = {}
    for name in names:
        for recipe in _find_by_name(name):
            recipes.setdefault(recipe.name, recipe)
    return list(recipes.values())


def check_options(recipe: Recipe, path: str) -> None:
    """Raise a `UserError` if a file names a method or an option that is not there."""
    for cell in recipe.cells.values():
        for variant in ("", *recipe.variants):
            for grid in recipe.grids_of(cell, variant):
                first = {
                    name: values[0].get("low")
                    if isinstance(values[0], Mapping)
                    else values[0]
                    for name, values in grid.items()
                    if values
                }
                try:
                    recipe.config(cell, first)
                except UserError as error:
                    raise UserError(f"{path}: {error}") from None


def own_table(path: str) -> PaperTable:
    """The table of a file with one recipe."""
    return PaperTable(
        Path(path).stem,
        Path(path).stem,
        "best",
        [],
        legend="mean and standard deviation of the test score, of the setting with the "
        "best mean validation score; shaded: {}",
    )


def _find_by_name(name: str) -> list[Recipe]:
    if name.endswith(".toml"):
        try:
            recipe = parse(Path(name).read_text("utf-8"), Path(name).stem)
        except OSError as error:
            raise UserError(f"{name}: {error.strerror}.") from None
        except UnicodeDecodeError:
            raise UserError(f"{name} is not a recipe: it is not UTF-8.") from None
        check_options(recipe, name)
        return [recipe]
    tables = paper_tables()
    table, _, row = name.partition("/")
    if table not in tables:
        rows = [f"{one.name}/{row}" for one in tables.values() for row in one.rows]
        hint = did_you_mean(name, (*tables, *rows))
        raise UserError(f"No recipe '{name}'.{hint} `unalike list recipes` names them.")
    recipes = tables[table].recipes()
    by_name = {recipe.name: recipe for recipe in recipes}
    return [lookup(by_name, name, "recipe")] if row else recipes
