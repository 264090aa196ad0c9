"""Confusion matrix and reliability of a configuration, over all splits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from unalike.experiments.database import Row
from unalike.experiments.evaluation import PredictionSummary, merge_summaries
from unalike.reports.site.documents import Document, config_id
from unalike.reports.site.leaderboard import round_floats


def predictions_by_config(rows: Iterable[Row]) -> dict[str, Document]:
    """The stored predictions of runs by the ids of their configurations."""
    summaries: dict[str, list[PredictionSummary]] = {}
    for row in rows:
        if stored := row.get("answers"):
            summaries.setdefault(config_id(row), []).append(
                PredictionSummary.from_json(stored)
            )
    return {config: merged_predictions(runs) for config, runs in summaries.items()}


def merged_predictions(summaries: list[PredictionSummary]) -> Document:
    """The predictions of all splits of a configuration as JSON."""
    merged = merge_summaries(summaries)
    reliability: Document | None = None
    if merged.reliability:
        bins = asdict(merged.reliability).items()
        reliability = {name: [*map(round_floats, values)] for name, values in bins}
        reliability["error"] = round_floats(merged.reliability.error)
    return {
        "splits": len(summaries),
        "classes": merged.classes,
        "confusion": merged.confusion,
        "reliability": reliability,
    }
