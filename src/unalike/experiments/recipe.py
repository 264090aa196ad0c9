"""Recipe: a row of a results table: what to run for it, and what the paper prints."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from unalike.batchings import BATCHINGS
from unalike.errors import UserError
from unalike.experiments.setting import WHOLE, Setting, build
from unalike.experiments.view import AS_USUAL, View
from unalike.methods import METHODS

Grid = Mapping[str, Any]
"""Values of options by name: a list of them, or a single one."""


@dataclass(frozen=True, kw_only=True)
class Cell:
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
    view: View = AS_USUAL
    grid: Grid = field(default_factory=dict)
    """What differs from the grid of the row."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A row: a method, its grid, and a cell for each column."""

    name: str
    row: str
    method: str | None = None
    """None where the paper quotes a method that is not here."""
    batching: str = WHOLE
    grids: Sequence[Grid] = ({},)
    variants: Mapping[str, Grid] = field(default_factory=dict)
    """Other grids by name: the appendix's, where the scripts ran something else."""
    cells: Mapping[str, Cell]

    @property
    def known(self) -> bool:
        """Are its method and batching here?"""
        return self.method in METHODS and self.batching in BATCHINGS

    def grids_of(self, cell: Cell, variant: str = "") -> list[dict[str, list[Any]]]:
        """The values to try in a cell, as lists, grid by grid."""
        other = self.variants.get(variant, {})
        return [
            {
                name: as_list(value)
                for name, value in {**g, **cell.grid, **other}.items()
            }
            for g in self.grids
        ]

    def settings(self, cell: Cell, variant: str = "") -> Iterator[Setting]:
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
                yield self.setting(cell, dict(zip(grid, values_chosen, strict=True)))

    def setting(self, cell: Cell, chosen: Mapping[str, Any]) -> Setting:
        """One setting of a cell, with some options."""
        cut = {"batching": self.batching} if self.batching != WHOLE else {}
        return Setting(build(str(self.method), {**cut, **chosen}), cell.view)

    def setting_all(self, options: Grid) -> Recipe:
        """The same row with some options as told, whatever its grid says of them."""
        return replace(
            self,
            variants={n: {**grid, **options} for n, grid in self.variants.items()},
            cells={
                key: replace(cell, grid={**cell.grid, **options})
                for key, cell in self.cells.items()
            },
        )

    def on(self, datasets: Sequence[str]) -> Recipe:
        """The same row with the grid of its first cell on other datasets."""
        first = next(iter(self.cells.values()))
        cells = {
            name: Cell(dataset=name, splits=first.splits, grid=first.grid)
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


def _cell(key: str, row: Mapping[str, Any], facts: dict[str, Any]) -> Cell:
    shared = {name: row[name] for name in ("splits", "quoted") if name in row}
    seen = {n: facts.pop(n) for n in ("metric", "both_ways") if n in facts}
    return Cell(**{"dataset": key, **shared, **facts}, view=View(**seen))
