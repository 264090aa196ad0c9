"""Cell: a number of the leaderboard, with what leads to the runs behind it."""

from __future__ import annotations

from statistics import mean
from typing import Any

from unalike.experiments.select import Tried
from unalike.reports.score import Score
from unalike.site.mark import setting_mark, shelf_mark

Document = dict[str, Any]
"""What JSON can tell."""

DIGITS = 4


def cell(score: Score, chosen: Tried | None, settings: int, of: int | None) -> Document:
    """What the page tells of a number; nothing of what there is not."""
    told = {**score.facts, **behind(chosen)}
    if chosen:
        told |= {"settings": settings, "of": of}
    return {
        name: rounded(value)
        for name, value in told.items()
        if value is not None and value is not False
    }


def behind(chosen: Tried | None) -> Document:
    """The runs of a chosen setting: how many, what they cost, where they are."""
    if chosen is None:
        return {}
    first = chosen.runs[0]
    return {
        "runs": len(chosen.runs),
        "valid": chosen.valid,
        **cost(chosen),
        "shelf": shelf_mark(first["dataset"], first["method"]),
        "setting": setting_mark(first),
    }


def cost(setting: Tried) -> Document:
    """The mean time of a run, the most memory of any, and the device."""
    devices = sorted({row["device"] for row in setting.runs})
    return {
        "seconds": mean(row["seconds"] for row in setting.runs),
        "memory_mb": max(row["peak_memory_mb"] for row in setting.runs),
        "device": ", ".join(devices),
    }


def rounded(value: Any) -> Any:
    """A number without the digits that nobody reads; anything else as it is."""
    return round(value, DIGITS) if isinstance(value, float) else value
