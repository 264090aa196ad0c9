"""Curves: how the training of a setting went, split by split."""

from __future__ import annotations

import math
from collections.abc import Iterable

from unalike.experiments.record import unpack
from unalike.experiments.results import Row
from unalike.site.cell import Document
from unalike.site.mark import setting_mark

POINTS = 250
"""No curve on the page has more points."""
DIGITS = 5


def curves(rows: Iterable[Row]) -> dict[str, list[Document]]:
    """The curves of runs by the marks of their settings, as far as they were kept."""
    found: dict[str, list[Document]] = {}
    for row in rows:
        if row.get("curve"):
            told = {"split": row["split"], **curve(row)}
            found.setdefault(setting_mark(row), []).append(told)
    return found


def curve(row: Row) -> Document:
    """Losses, and grades in percent, at evenly spread epochs and the last."""
    losses, grades = unpack(row["curve"])
    step = math.ceil(len(losses) / POINTS)
    epochs = sorted({*range(0, len(losses), step), len(losses) - 1})
    return {
        "epochs": epochs,
        "losses": [short(losses[epoch]) for epoch in epochs],
        "grades": [short(100 * grades[epoch]) for epoch in epochs],
    }


def short(value: float) -> float | None:
    """A value with few digits; none where training came to something infinite."""
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
