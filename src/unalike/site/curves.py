"""Learning curves of a configuration, one for each split."""

from __future__ import annotations

import math
from collections.abc import Iterable

from unalike.experiments.record import unpack
from unalike.experiments.results import Row
from unalike.site.cell import Document
from unalike.site.mark import config_id

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
    losses, scores = unpack(row["curve"])
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
