"""All runs of a method on a dataset: configs, curves, predictions, sensitivity."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from unalike.errors import UserError
from unalike.experiments.config import config_from_dict
from unalike.experiments.database import Row, decompress_curves, result_from_row
from unalike.experiments.result import command_line
from unalike.experiments.selection import (
    ConfigRuns,
    best_by_validation,
    group_by_config,
)
from unalike.reports.site.documents import Document, config_id, mean_cost, round_floats

# Sensitivity: what each option of a method does to its score.


def all_options(setting: ConfigRuns) -> dict[str, Any]:
    """The options of a setting, with how it sees the dataset among them."""
    first = setting.runs[0]
    return {**first["options"], **first["view"]}


def varying_options(settings: Sequence[ConfigRuns]) -> dict[str, list[Any]]:
    """The options that took several values, with the values in order."""
    told: dict[str, dict[str, Any]] = {}
    for setting in settings:
        for name, value in all_options(setting).items():
            told.setdefault(name, {})[json.dumps(value)] = value
    return {
        name: sorted(values.values(), key=value_sort_key)
        for name, values in told.items()
        if len(values) > 1
    }


def value_sort_key(value: Any) -> tuple[bool, float, str]:
    """Numbers by size, then everything else by its spelling."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return False, float(value), ""
    return True, 0.0, json.dumps(value)


def sensitivity(settings: Sequence[ConfigRuns]) -> dict[str, list[Document]]:
    """For each varied option and each of its values, the best setting that has it."""
    return {
        name: [best_with_value(name, value, settings) for value in values]
        for name, values in varying_options(settings).items()
    }


def best_with_value(name: str, value: Any, settings: Sequence[ConfigRuns]) -> Document:
    """The setting with the best validation score among those with a value."""
    told = json.dumps(value)
    having = [one for one in settings if _has_value(all_options(one), name, told)]
    best = best_by_validation(having)
    assert best is not None
    return {
        "value": value,
        "valid": round_floats(best.valid),
        "test": round_floats(best.test),
        "settings": len(having),
    }


def _has_value(options: Mapping[str, Any], name: str, told: str) -> bool:
    return name in options and json.dumps(options[name]) == told


# Shelf: all runs of a method on a dataset, as columns.


SCORES = ("train", "valid", "test", "best_epoch", "seconds", "peak_memory_mb")


def method_runs(rows: Sequence[Row]) -> Document:
    """The settings of a shelf, the best first, and their runs."""
    settings = sorted(group_by_config(rows), key=lambda one: (-one.valid, one.setting))
    comparable = comparable_runs(settings)
    first = rows[0]
    return {
        "dataset": first["dataset"],
        "method": first["method"],
        **options(settings),
        "settings": to_columns(
            [{**summary(one), "alike": one in comparable} for one in settings]
        ),
        "runs": to_columns(
            [
                {"setting": place, **run_fields(row)}
                for place, one in enumerate(settings)
                for row in one.runs
            ]
        ),
        "sensitivity": sensitivity(comparable),
    }


def options(settings: Sequence[ConfigRuns]) -> Document:
    """The options that all settings share, and the others as columns."""
    several = varying_options(settings)
    shared = all_options(settings[0]).items()
    return {
        "shared": {name: value for name, value in shared if name not in several},
        "options": {
            name: [all_options(one).get(name) for one in settings] for name in several
        },
    }


def comparable_runs(settings: Sequence[ConfigRuns]) -> list[ConfigRuns]:
    """The settings whose scores can be compared: the metric and splits of most."""

    def kind(one: ConfigRuns) -> tuple[str, int]:
        return one.runs[0]["metric"], len(one.runs)

    most = Counter(kind(one) for one in settings).most_common(1)[0][0]
    return [one for one in settings if kind(one) == most]


def summary(setting: ConfigRuns) -> Document:
    """What is told of a setting."""
    first = setting.runs[0]
    return {
        "mark": config_id(first),
        "metric": first["metric"],
        "count": len(setting.runs),
        "valid": round_floats(setting.valid),
        "test": round_floats(setting.test),
        "std": round_floats(setting.std),
        **{name: round_floats(value) for name, value in mean_cost(setting).items()},
        "seed": first["seed"],
        "command": command_prefix(first),
    }


def command_prefix(row: Row) -> str | None:
    """The command that repeats a run, up to its splits; none where it cannot."""
    try:
        facts = config_from_dict(row).to_dict
    except UserError:
        return None
    whole = command_line(result_from_row({**row, **facts}), splits="0")
    return whole.rpartition(" --splits ")[0]


def run_fields(row: Row) -> Document:
    """What is told of a run."""
    scores = {name: round_floats(row[name]) for name in SCORES}
    where = {name: row[name] for name in ("split", "device", "commit")}
    return {**where, **scores, "finished": round(row["finished"])}


def to_columns(documents: Sequence[Document]) -> dict[str, Any]:
    """Documents of the same keys as lists; what all have in common is told once."""
    told: dict[str, Any] = {}
    for name in documents[0] if documents else ():
        values = [document[name] for document in documents]
        same = all(value == values[0] for value in values)
        told[name] = {"all": values[0]} if same else values
    return {"length": len(documents), **told}


# Curves: how the training of a setting went, split by split.


MAX_POINTS = 250
"""No curve on the page has more points."""
DIGITS = 5


def curves_by_config(rows: Iterable[Row]) -> dict[str, list[Document]]:
    """The curves of runs by the marks of their settings, as far as they were kept."""
    found: dict[str, list[Document]] = {}
    for row in rows:
        if row.get("curve"):
            told = {"split": row["split"], **curve(row)}
            found.setdefault(config_id(row), []).append(told)
    return found


def curve(row: Row) -> Document:
    """Losses, and grades in percent, at evenly spread epochs and the last."""
    losses, grades = decompress_curves(row["curve"])
    step = math.ceil(len(losses) / MAX_POINTS)
    epochs = sorted({*range(0, len(losses), step), len(losses) - 1})
    return {
        "epochs": epochs,
        "losses": [round_finite(losses[epoch]) for epoch in epochs],
        "grades": [round_finite(100 * grades[epoch]) for epoch in epochs],
    }


def round_finite(value: float) -> float | None:
    """A value with few digits; none where training came to something infinite."""
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
