"""Answered: what a setting said of test nodes, all splits together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from unalike.experiments.answers import Answers, together
from unalike.experiments.results import Row
from unalike.site.cell import Document, rounded
from unalike.site.mark import setting_mark


def answered(rows: Iterable[Row]) -> dict[str, Document]:
    """The answers of runs by the marks of their settings, as far as they were kept."""
    found: dict[str, list[Answers]] = {}
    for row in rows:
        if told := row.get("answers"):
            found.setdefault(setting_mark(row), []).append(Answers.revived(told))
    return {mark: summed(several) for mark, several in found.items()}


def summed(several: list[Answers]) -> Document:
    """What the page tells of the answers of a setting."""
    found = together(several)
    sure = found.reliability
    return {
        "splits": len(several),
        "classes": found.classes,
        "confusion": found.confusion,
        "reliability": sure
        and {
            **{name: [*map(rounded, bins)] for name, bins in asdict(sure).items()},
            "error": rounded(sure.error),
        },
    }
