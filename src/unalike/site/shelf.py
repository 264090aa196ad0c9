"""All runs of a method on a dataset, as columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from unalike.errors import UserError
from unalike.experiments.record import result_of
from unalike.experiments.result import command
from unalike.experiments.results import Row
from unalike.experiments.select import Tried, tried
from unalike.experiments.setting import revived
from unalike.site.cell import Document, mean_cost, round_floats
from unalike.site.mark import config_id
from unalike.site.sensitivity import all_options, sensitivity, varying_options

SCORES = ("train", "valid", "test", "best_epoch", "seconds", "peak_memory_mb")


def method_runs(rows: Sequence[Row]) -> Document:
    """The configurations of a method on a dataset, the best first, and their runs."""
    configs = sorted(tried(rows), key=lambda one: (-one.valid, one.setting))
    same_metric = comparable(configs)
    first = rows[0]
    return {
        "dataset": first["dataset"],
        "method": first["method"],
        **options(configs),
        "configs": to_columns(
            [{**summary(one), "comparable": one in same_metric} for one in configs]
        ),
        "runs": to_columns(
            [
                {"config": index, **run_fields(row)}
                for index, one in enumerate(configs)
                for row in one.runs
            ]
        ),
        "sensitivity": sensitivity(same_metric),
    }


def options(configs: Sequence[Tried]) -> Document:
    """The options that all configurations share, and the others as columns."""
    varying = varying_options(configs)
    first = all_options(configs[0]).items()
    return {
        "shared_options": {name: value for name, value in first if name not in varying},
        "varying_options": {
            name: [all_options(one).get(name) for one in configs] for name in varying
        },
    }


def comparable(configs: Sequence[Tried]) -> list[Tried]:
    """The configurations with the most frequent metric and number of splits."""

    def kind(one: Tried) -> tuple[str, int]:
        return one.runs[0]["metric"], len(one.runs)

    most = Counter(kind(one) for one in configs).most_common(1)[0][0]
    return [one for one in configs if kind(one) == most]


def summary(config: Tried) -> Document:
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
        "command": command_prefix(first),
    }


def command_prefix(row: Row) -> str | None:
    """The command that repeats a run, without its splits; None where there is none."""
    try:
        facts = revived(row).facts
    except UserError:
        return None
    line = command(result_of({**row, **facts}), splits="0")
    return line.rpartition(" --splits ")[0]


def run_fields(row: Row) -> Document:
    """The scores and the environment of a run."""
    scores = {name: round_floats(row[name]) for name in SCORES}
    environment = {name: row[name] for name in ("split", "device", "commit")}
    return {**environment, **scores, "finished": round(row["finished"])}


def to_columns(documents: Sequence[Document]) -> dict[str, Any]:
    """Documents of the same keys as lists; a value that all share is stored once."""
    columns: dict[str, Any] = {}
    for name in documents[0] if documents else ():
        values = [document[name] for document in documents]
        is_constant = all(value == values[0] for value in values)
        columns[name] = {"constant": values[0]} if is_constant else values
    return {"length": len(documents), **columns}
