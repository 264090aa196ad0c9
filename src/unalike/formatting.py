"""Runs: a list of results, and how methods compare in it."""

from __future__ import annotations

import math
from statistics import mean, stdev
from typing import Any

# Runs: a list of results, and how methods compare in it.


def format_mean_std(numbers: list[float]) -> str:
    """A mean, with the standard deviation where there are several numbers."""
    about = f"{mean(numbers):.2f}"
    return about if len(numbers) == 1 else f"{about} ± {stdev(numbers):.2f}"


# Plain: a document as JSON can tell it, with null for what is not a number.


def json_safe(value: Any) -> Any:
    """The same document with null where a number is not one."""
    if isinstance(value, dict):
        return {key: json_safe(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(inner) for inner in value]
    return None if isinstance(value, float) and math.isnan(value) else value


# Ranking: the methods of an advice as columns of a table.


MINUTE, HOUR, GIGABYTE = 60, 3600, 1024


def format_duration(seconds: float) -> str:
    """A time in a unit that suits it."""
    if seconds < MINUTE:
        return f"{max(1, round(seconds))} s"
    if seconds < HOUR:
        return f"{seconds / MINUTE:.0f} min"
    return f"{seconds / HOUR:.1f} h"


def format_memory(megabytes: float) -> str:
    """An amount of memory in a unit that suits it."""
    if megabytes < GIGABYTE:
        return f"{max(1, round(megabytes))} MB"
    return f"{megabytes / GIGABYTE:.1f} GB"
