"""Confusion matrix and reliability of a configuration, over all splits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from unalike.experiments.answers import Answers, together
from unalike.experiments.results import Row
from unalike.site.cell import Document, round_floats
from unalike.site.mark import config_id


def predictions_by_config(rows: Iterable[Row]) -> dict[str, Document]:
    """The stored predictions of runs by the ids of their configurations."""
    summaries: dict[str, list[Answers]] = {}
    for row in rows:
        if stored := row.get("answers"):
            summaries.setdefault(config_id(row), []).append(Answers.revived(stored))
    return {config: merged_predictions(runs) for config, runs in summaries.items()}


def merged_predictions(summaries: list[Answers]) -> Document:
    """The predictions of all splits of a configuration as JSON."""
    merged = together(summaries)
    reliability = merged.reliability
    return {
        "splits": len(summaries),
        "classes": merged.classes,
        "confusion": merged.confusion,
        "reliability": reliability
        and {
            **{
                name: [*map(round_floats, bins)]
                for name, bins in asdict(reliability).items()
            },
            "error": round_floats(reliability.error),
        },
    }
