"""Ranking: the methods of an advice as columns of a table."""

from __future__ import annotations

from collections.abc import Sequence

from unalike.advice.advice import Recommendation
from unalike.reports.layout import Column

MINUTE, HOUR, GIGABYTE = 60, 3600, 1024


def ranking(ranked: Sequence[Recommendation]) -> list[Column]:
    """Each method with what to expect of it, what it costs, and why."""
    return [
        Column("", [str(place) for place in range(1, len(ranked) + 1)], right=True),
        Column("method", [each.words for each in ranked]),
        Column("expected", [expected(each) for each in ranked]),
        Column("time", [duration(each.cost.seconds) for each in ranked], right=True),
        Column("memory", [amount(each.cost.megabytes) for each in ranked], right=True),
        Column("why", [each.reason for each in ranked], wraps=True),
    ]


def expected(each: Recommendation) -> str:
    """The grade to expect, and how far draws were apart."""
    spread = each.trial.spread
    return f"{each.trial.expected:.1f}" + ("" if spread is None else f" ± {spread:.1f}")


def duration(seconds: float) -> str:
    """A time in a unit that suits it."""
    if seconds < MINUTE:
        return f"{max(1, round(seconds))} s"
    if seconds < HOUR:
        return f"{seconds / MINUTE:.0f} min"
    return f"{seconds / HOUR:.1f} h"


def amount(megabytes: float) -> str:
    """An amount of memory in a unit that suits it."""
    if megabytes < GIGABYTE:
        return f"{max(1, round(megabytes))} MB"
    return f"{megabytes / GIGABYTE:.1f} GB"
