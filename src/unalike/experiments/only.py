"""Only: which cells and settings of recipes are meant, and what is set in all."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from typing import Any

from unalike.errors import UserError
from unalike.experiments.agenda import Chosen
from unalike.experiments.recipe import Cell, Recipe
from unalike.experiments.setting import Setting


def only(words: Sequence[str]) -> Chosen:
    """A test for words like method=linkx and hidden=64.

    Different names must all fit; of several values of one name, any may.
    """
    wanted: dict[str, set[str]] = {}
    for name, value in pairs(words, "--only", "method=linkx"):
        wanted.setdefault(name, set()).add(value)

    def chosen(recipe: Recipe, cell: Cell, setting: Setting) -> bool:
        facts = facts_of(recipe, cell, setting)
        return all(facts.get(name) in values for name, values in wanted.items())

    return chosen


def options_set(words: Sequence[str]) -> dict[str, Any]:
    """The options that words like epochs=100 and precision=bf16 set."""
    return {
        name: plain(value) for name, value in pairs(words, "--set", "precision=bf16")
    }


def pairs(words: Sequence[str], option: str, example: str) -> Iterator[tuple[str, str]]:
    """The names and values of words."""
    for word in words:
        name, found, value = word.partition("=")
        if not found:
            raise UserError(f"{option} is '{word}'; write NAME=VALUE, as in {example}.")
        yield name.replace("-", "_"), value


def plain(text: str) -> Any:
    """A value as a recipe would write it; words need no quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def facts_of(recipe: Recipe, cell: Cell, setting: Setting) -> dict[str, str]:
    """What may be asked of a setting in a cell."""
    return {
        **{name: str(value) for name, value in setting.facts["options"].items()},
        "row": recipe.row,
        "recipe": recipe.name,
        "method": str(recipe.method),
        "dataset": cell.dataset,
    }
