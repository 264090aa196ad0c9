"""Sensitivity: what each option of a method does to its score."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from unalike.experiments.select import Tried, select
from unalike.site.cell import Document, rounded


def options_of(setting: Tried) -> dict[str, Any]:
    """The options of a setting, with how it sees the dataset among them."""
    first = setting.runs[0]
    return {**first["options"], **first["view"]}


def varied(settings: Sequence[Tried]) -> dict[str, list[Any]]:
    """The options that took several values, with the values in order."""
    told: dict[str, dict[str, Any]] = {}
    for setting in settings:
        for name, value in options_of(setting).items():
            told.setdefault(name, {})[json.dumps(value)] = value
    return {
        name: sorted(values.values(), key=in_order)
        for name, values in told.items()
        if len(values) > 1
    }


def in_order(value: Any) -> tuple[bool, float, str]:
    """Numbers by size, then everything else by its spelling."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return False, float(value), ""
    return True, 0.0, json.dumps(value)


def sensitivity(settings: Sequence[Tried]) -> dict[str, list[Document]]:
    """For each varied option and each of its values, the best setting that has it."""
    return {
        name: [best_with(name, value, settings) for value in values]
        for name, values in varied(settings).items()
    }


def best_with(name: str, value: Any, settings: Sequence[Tried]) -> Document:
    """The setting with the best validation score among those with a value."""
    told = json.dumps(value)
    having = [one for one in settings if _says(options_of(one), name, told)]
    best = select(having)
    assert best is not None
    return {
        "value": value,
        "valid": rounded(best.valid),
        "test": rounded(best.test),
        "settings": len(having),
    }


def _says(options: Mapping[str, Any], name: str, told: str) -> bool:
    return name in options and json.dumps(options[name]) == told
