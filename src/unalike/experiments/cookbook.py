"""The cookbook: the recipes of every results table of the paper."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from unalike.errors import UserError, did_you_mean, lookup
from unalike.experiments.recipe import Recipe, parse
from unalike.experiments.space import num_settings


@dataclass(frozen=True)
class Printed:
    """A results table of the paper: its title, its rows, and how it is shaded."""

    name: str
    title: str
    shaded: str
    rows: Sequence[str]

    def recipes(self) -> list[Recipe]:
        """The recipes of its rows."""
        return [
            parse(
                (_home() / self.name / f"{row}.toml").read_text("utf-8"),
                f"{self.name}/{row}",
            )
            for row in self.rows
        ]


def printed_tables() -> dict[str, Printed]:
    """Every results table by name."""
    folders = sorted(entry.name for entry in _home().iterdir() if entry.is_dir())
    return {name: _table(name) for name in folders}


def _table(name: str) -> Printed:
    about = tomllib.loads((_home() / name / "table.toml").read_text("utf-8"))
    return Printed(name, **about)


def _home() -> Traversable:
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
    tables = printed_tables()
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


def recipe_entries() -> list[dict[str, Any]]:
    """What lists tell of every recipe."""
    return [
        {
            "name": recipe.name,
            "row": recipe.row,
            "method": recipe.method or "",
            "batching": recipe.batching,
            "settings": num_settings(recipe),
            "variants": ", ".join(recipe.variants),
            "datasets": ", ".join(recipe.cells),
            "quoted": {
                n: cell.quoted for n, cell in recipe.cells.items() if cell.quoted
            },
            "printed": {n: cell.mean for n, cell in recipe.cells.items()},
        }
        for table in printed_tables().values()
        for recipe in table.recipes()
    ]
