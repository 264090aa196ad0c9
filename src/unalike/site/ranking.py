"""Ranking: the rows of a table from the best to the worst, column by column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unalike.reports.score import Score


def rankings(
    rows: Sequence[Mapping[str, Score]], columns: Sequence[str]
) -> list[list[int]]:
    """The places of the rows that have a number, for each column."""
    return [ranking([row.get(column) for row in rows]) for column in columns]


def ranking(scores: Sequence[Score | None]) -> list[int]:
    """The best first; the earlier among equals.

    The printed number stands in where there is none of ours.
    """
    values = {
        place: score.value[0]
        for place, score in enumerate(scores)
        if score is not None and score.value is not None
    }
    return sorted(values, key=lambda place: (-values[place], place))
