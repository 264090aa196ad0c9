"""Answered: what a setting said of test nodes, all splits together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from unalike.experiments.database import Row
from unalike.experiments.evaluation import PredictionSummary, merge_summaries
from unalike.reports.site.documents import Document, config_id, round_floats


def predictions_by_config(rows: Iterable[Row]) -> dict[str, Document]:
    """The answers of runs by the marks of their settings, as far as they were kept."""
    found: dict[str, list[PredictionSummary]] = {}
    for row in rows:
        if told := row.get("answers"):
            found.setdefault(config_id(row), []).append(
                PredictionSummary.from_json(told)
            )
    return {mark: merged_predictions(several) for mark, several in found.items()}


def merged_predictions(several: list[PredictionSummary]) -> Document:
    """What the page tells of the answers of a setting."""
    found = merge_summaries(several)
    sure = found.reliability
    return {
        "splits": len(several),
        "classes": found.classes,
        "confusion": found.confusion,
        "reliability": sure
        and {
            **{name: [*map(round_floats, bins)] for name, bins in asdict(sure).items()},
            "error": round_floats(sure.error),
        },
    }
