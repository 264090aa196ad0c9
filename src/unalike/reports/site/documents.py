"""JSON documents of the page: ids, rounding, script form."""

from __future__ import annotations

import json
from statistics import mean
from typing import Any

from unalike.experiments.config import json_hash
from unalike.experiments.database import Row
from unalike.experiments.selection import ConfigRuns

# Mark: the short names of settings and of shelves of runs.


LENGTH = 16
"""Hexadecimal digits; two of a million agree by chance of 10^-8."""


def method_runs_id(dataset: str, method: str) -> str:
    """What the runs of a method on a dataset are filed under."""
    return json_hash({"dataset": dataset, "method": method})[:LENGTH]


def config_id(row: Row) -> str:
    """What the runs of a setting with one seed on one version of a dataset share."""
    told = {name: row[name] for name in ("setting", "dataset_hash", "seed")}
    return json_hash(told)[:LENGTH]


# Cell: a number of the leaderboard, with what leads to the runs behind it.


Document = dict[str, Any]
"""What JSON can tell."""

DIGITS = 4


def mean_cost(setting: ConfigRuns) -> Document:
    """The mean time of a run, the most memory of any, and the device."""
    devices = sorted({row["device"] for row in setting.runs})
    return {
        "seconds": mean(row["seconds"] for row in setting.runs),
        "memory_mb": max(row["peak_memory_mb"] for row in setting.runs),
        "device": ", ".join(devices),
    }


def round_floats(value: Any) -> Any:
    """A number without the digits that nobody reads; anything else as it is."""
    return round(value, DIGITS) if isinstance(value, float) else value


# Script: a document as a file that a page can load from a disk.


def as_script(name: str, document: Document) -> str:
    """A call that hands the document to the page under a name.

    A page that was opened from a disk may load scripts but no other files. The
    result holds no `<`, so that it could stand inside a page as well.
    """
    told = json.dumps([name, document], separators=(",", ":"))
    return f"receive(...{told});\n".replace("<", "\\u003c")
