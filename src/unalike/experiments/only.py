"""Only: which cells and settings of recipes are meant."""

from __future__ import annotations

from collections.abc import Sequence

from unalike.errors import UserError
from unalike.experiments.agenda import Chosen
from unalike.experiments.recipe import Cell, Recipe
from unalike.experiments.setting import Setting


def only(words: Sequence[str]) -> Chosen:
    """A test for words like method=linkx and hidden=64.

    Different names must all fit; of several values of one name, any may.
    """
    wanted: dict[str, set[str]] = {}
    for word in words:
        name, found, value = word.partition("=")
        if not found:
            raise UserError(
                f"--only is '{word}'; write NAME=VALUE, as in method=linkx."
            )
        wanted.setdefault(name.replace("-", "_"), set()).add(value)

    def chosen(recipe: Recipe, cell: Cell, setting: Setting) -> bool:
        facts = facts_of(recipe, cell, setting)
        return all(facts.get(name) in values for name, values in wanted.items())

    return chosen


def facts_of(recipe: Recipe, cell: Cell, setting: Setting) -> dict[str, str]:
    """What may be asked of a setting in a cell."""
    return {
        **{name: str(value) for name, value in setting.facts["options"].items()},
        "row": recipe.row,
        "recipe": recipe.name,
        "method": str(recipe.method),
        "dataset": cell.dataset,
    }
