"""Format mean ± std, durations, memory sizes, text for terminals and JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from statistics import mean, stdev
from typing import Any

MINUTE, HOUR = 60, 3600  # seconds
GIGABYTE = 1024  # megabytes
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters but for tabs and line feeds, and bytes that are no UTF-8."""


def format_mean_std(numbers: Sequence[float]) -> str:
    """The mean, with the standard deviation if there are several numbers."""
    return format_score(mean(numbers), stdev(numbers) if len(numbers) > 1 else None)


def format_score(mean: float, std: float | None) -> str:
    """A mean with its standard deviation, in the format of the paper."""
    return f"{mean:.2f}" if std is None else f"{mean:.2f} ± {std:.2f}"


def format_duration(seconds: int | float) -> str:
    """A duration in seconds, minutes or hours."""
    if seconds < MINUTE:
        return f"{max(1, round(seconds))} s"
    if seconds < HOUR:
        return f"{seconds / MINUTE:.0f} min"
    return f"{seconds / HOUR:.1f} h"


def format_memory(megabytes: int | float) -> str:
    """An amount of memory in MB or GB."""
    if megabytes < GIGABYTE:
        return f"{max(1, round(megabytes))} MB"
    return f"{megabytes / GIGABYTE:.1f} GB"


def printable(text: str) -> str:
    r"""Text with control characters, which terminals obey, as escapes such as \x1b."""
    return CONTROLS.sub(
        lambda found: found[0].encode("unicode_escape").decode("ascii"), text
    )


def json_safe(value: Any) -> Any:
    """The same document with None for NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {key: json_safe(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
