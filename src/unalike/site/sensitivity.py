"""The effect of each hyperparameter on the score of a method."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from unalike.experiments.select import Tried, select
from unalike.site.cell import Document, round_floats


def all_options(config: Tried) -> dict[str, Any]:
    """The options of a configuration, with those of its dataset."""
    first = config.runs[0]
    return {**first["options"], **first["view"]}


def varying_options(configs: Sequence[Tried]) -> dict[str, list[Any]]:
    """The options that have several values, with the values in order."""
    options: dict[str, dict[str, Any]] = {}
    for config in configs:
        for name, value in all_options(config).items():
            options.setdefault(name, {})[json.dumps(value)] = value
    return {
        name: sorted(values.values(), key=value_sort_key)
        for name, values in options.items()
        if len(values) > 1
    }


def value_sort_key(value: Any) -> tuple[bool, float, str]:
    """Numbers by size, then everything else by its JSON text."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return False, float(value), ""
    return True, 0.0, json.dumps(value)


def sensitivity(configs: Sequence[Tried]) -> dict[str, list[Document]]:
    """The best configuration with each value of each varying option."""
    return {
        name: [best_with_value(name, value, configs) for value in values]
        for name, values in varying_options(configs).items()
    }


def best_with_value(name: str, value: Any, configs: Sequence[Tried]) -> Document:
    """The configuration with the best validation score among those with a value."""
    text = json.dumps(value)
    matches = [one for one in configs if _has_value(all_options(one), name, text)]
    best = select(matches)
    assert best is not None
    return {
        "value": value,
        "valid": round_floats(best.valid),
        "test": round_floats(best.test),
        "configs": len(matches),
    }


def _has_value(options: Mapping[str, Any], name: str, text: str) -> bool:
    return name in options and json.dumps(options[name]) == text
