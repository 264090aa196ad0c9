"""Space: the options that a recipe fixes for a cell, and those it varies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from unalike.experiments.recipe import Cell, Recipe


@dataclass(frozen=True)
class Space:
    """The options of a cell: those that are fixed, and those to be searched."""

    fixed: Mapping[str, Any]
    free: Mapping[str, list[Any]]

    @classmethod
    def of(cls, recipe: Recipe, cell: Cell, variant: str) -> Space:
        """The values of all grids of a cell together."""
        values: dict[str, list[Any]] = {}
        for grid in recipe.grids_of(cell, variant):
            for name, some in grid.items():
                known = values.setdefault(name, [])
                known += [value for value in some if value not in known]
        free = {name: told for name, told in values.items() if wide(told)}
        fixed = {name: told[0] for name, told in values.items() if name not in free}
        return cls(fixed, free)

    @property
    def open(self) -> bool:
        """Is there a range, of which no list tells every value?"""
        return any(isinstance(told[0], Mapping) for told in self.free.values())


def wide(values: list[Any]) -> bool:
    """Is there something to choose from?"""
    return len(values) > 1 or isinstance(values[0], Mapping)


def num_settings(recipe: Recipe) -> int | None:
    """How many settings a row tries at most; None where it has ranges, or no method."""
    cells = recipe.cells.values()
    if recipe.method is None or any(Space.of(recipe, c, "").open for c in cells):
        return None
    return max(
        sum(prod(map(len, grid.values())) for grid in recipe.grids_of(cell))
        for cell in cells
    )
