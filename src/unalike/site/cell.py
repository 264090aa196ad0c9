"""Cells of a leaderboard, with the ids of the runs behind each number."""

from __future__ import annotations

from statistics import mean
from typing import Any

from unalike.experiments.select import Tried
from unalike.reports.score import Score
from unalike.site.mark import config_id, method_runs_id

Document = dict[str, Any]
"""A JSON object."""

DIGITS = 4


def cell(
    score: Score, selected: Tried | None, configs: int, grid_size: int | None
) -> Document:
    """A cell as JSON, without the keys that have no value."""
    document = {**score.facts, **provenance(selected)}
    if selected:
        document |= {"configs": configs, "grid_size": grid_size}
    return {
        name: round_floats(value)
        for name, value in document.items()
        if value is not None and value is not False
    }


def provenance(selected: Tried | None) -> Document:
    """The number of runs of a selected configuration, their cost and their ids."""
    if selected is None:
        return {}
    first = selected.runs[0]
    return {
        "runs": len(selected.runs),
        "valid": selected.valid,
        **mean_cost(selected),
        "method_runs": method_runs_id(first["dataset"], first["method"]),
        "config": config_id(first),
    }


def mean_cost(config: Tried) -> Document:
    """The mean time of a run, the largest memory of any run, and the devices."""
    devices = sorted({row["device"] for row in config.runs})
    return {
        "seconds": mean(row["seconds"] for row in config.runs),
        "memory_mb": max(row["peak_memory_mb"] for row in config.runs),
        "device": ", ".join(devices),
    }


def round_floats(value: Any) -> Any:
    """A float with four digits after the point; any other value as it is."""
    return round(value, DIGITS) if isinstance(value, float) else value
