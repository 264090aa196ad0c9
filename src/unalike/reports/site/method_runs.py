"""All runs of a method on a dataset: configs, curves, predictions, sensitivity."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
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
from unalike.reports.site.documents import Document, config_id
from unalike.reports.site.leaderboard import mean_cost, round_floats

# The effect of each hyperparameter on the score of a method.


def all_options(config: ConfigRuns) -> dict[str, Any]:
    """The options of a configuration, with those of its dataset."""
    first = config.runs[0]
    return {**first["options"], **first["view"]}


def varying_options(configs: Sequence[ConfigRuns]) -> dict[str, list[Any]]:
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


def sensitivity(configs: Sequence[ConfigRuns]) -> dict[str, list[Document]]:
    """The best configuration with each value of each varying option."""
    result: dict[str, list[Document]] = {}
    for name, values in varying_options(configs).items():
        by_value: dict[str, list[ConfigRuns]] = {}
        for one in configs:
            if name in (options := all_options(one)):
                by_value.setdefault(json.dumps(options[name]), []).append(one)
        result[name] = [
            best_with_value(value, by_value[json.dumps(value)]) for value in values
        ]
    return result


def best_with_value(value: Any, configs: Sequence[ConfigRuns]) -> Document:
    """The configuration with the best validation score among those with a value."""
    best = best_by_validation(configs)
    assert best is not None
    return {
        "value": value,
        "valid": round_floats(best.valid),
        "test": round_floats(best.test),
        "configs": len(configs),
    }


SCORES = ("train", "valid", "test", "best_epoch", "seconds", "peak_memory_mb")


def method_runs(rows: Sequence[Row], path: str | None = None) -> Document:
    """The configurations of a method on a dataset, the best first, and their runs.

    `path` is the folder of a stored graph, which commands need to find it.
    """
    configs = sorted(group_by_config(rows), key=lambda one: (-one.valid, one.setting))
    same_metric = comparable(configs)
    first = rows[0]
    return {
        "dataset": first["dataset"],
        "method": first["method"],
        **options(configs),
        "configs": to_columns(
            {**summary(one, path), "comparable": one in same_metric} for one in configs
        ),
        "runs": to_columns(
            {
                "config": index,
                **{name: row[name] for name in ("split", "device", "commit")},
                **{name: round_floats(row[name]) for name in SCORES},
                "finished": round(row["finished"]),
            }
            for index, one in enumerate(configs)
            for row in one.runs
        ),
        "sensitivity": sensitivity(same_metric),
    }


def options(configs: Sequence[ConfigRuns]) -> Document:
    """The options that all configurations share, and the others as columns."""
    varying = varying_options(configs)
    first = all_options(configs[0]).items()
    return {
        "shared_options": {name: value for name, value in first if name not in varying},
        "varying_options": {
            name: [all_options(one).get(name) for one in configs] for name in varying
        },
    }


def comparable(configs: Sequence[ConfigRuns]) -> list[ConfigRuns]:
    """The configurations with the most frequent data, metric, seed and splits."""

    def kind(one: ConfigRuns) -> tuple[str, str, int, frozenset[int]]:
        first = one.runs[0]
        return first["dataset_hash"], first["metric"], one.seed, one.splits

    most = Counter(kind(one) for one in configs).most_common(1)[0][0]
    return [one for one in configs if kind(one) == most]


def summary(config: ConfigRuns, path: str | None) -> Document:
    """The scores, the cost and the command of a configuration."""
    first = config.runs[0]
    return {
        "id": config_id(first),
        "metric": first["metric"],
        "num_splits": len(config.runs),
        "valid": round_floats(config.valid),
        "test": round_floats(config.test),
        "std": round_floats(config.std),
        **{name: round_floats(value) for name, value in mean_cost(config).items()},
        "seed": first["seed"],
        "command": command_prefix(first, path),
    }


def command_prefix(row: Row, path: str | None) -> str | None:
    """The command that repeats a run, without its splits; None where there is none."""
    try:
        facts = config_from_dict(row).to_dict
    except UserError:
        return None
    line = command_line(result_from_row({**row, **facts}), splits="0", dataset=path)
    return line.rpartition(" --splits ")[0]


def to_columns(documents: Iterable[Document]) -> dict[str, Any]:
    """Documents of the same keys as lists; a value that all share is stored once."""
    documents = list(documents)
    columns: dict[str, Any] = {"length": len(documents)}
    for name in documents[0] if documents else ():
        values = [document[name] for document in documents]
        is_constant = all(value == values[0] for value in values)
        columns[name] = {"constant": values[0]} if is_constant else values
    return columns


MAX_POINTS = 250
"""Longer curves are thinned to this many points."""
DIGITS = 5


def curves_by_config(rows: Iterable[Row]) -> dict[str, list[Document]]:
    """The stored curves of runs by the ids of their configurations."""
    curves: dict[str, list[Document]] = {}
    for row in rows:
        if row.get("curve"):
            document = {"split": row["split"], **curve(row)}
            curves.setdefault(config_id(row), []).append(document)
    return curves


def curve(row: Row) -> Document:
    """Training losses, and validation scores in percent, at evenly spaced epochs."""
    losses, scores = decompress_curves(row["curve"])
    step = math.ceil(len(losses) / MAX_POINTS)
    epochs = sorted({*range(0, len(losses), step), len(losses) - 1})
    return {
        "epochs": epochs,
        "losses": [round_finite(losses[epoch]) for epoch in epochs],
        "scores": [round_finite(100 * scores[epoch]) for epoch in epochs],
    }


def round_finite(value: float) -> float | None:
    """A value with five significant digits; None where it is not finite."""
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
