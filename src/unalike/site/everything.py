"""Everything: all that was run, whatever the settings, as one more table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from unalike.experiments.results import Row
from unalike.experiments.select import Tried, select, tried
from unalike.experiments.setting import WHOLE
from unalike.reports.score import Score
from unalike.reports.scores import shaded
from unalike.site.cell import Document, cell
from unalike.site.leaderboard import family
from unalike.site.ranking import rankings

SHADED = "best"


@dataclass(frozen=True, order=True)
class Place:
    """Where a run belongs: its row and its column."""

    dataset: str
    view: str
    metric: str
    method: str
    batching: str

    @classmethod
    def of(cls, row: Row) -> Place:
        """The place of a run."""
        view = ", ".join(f"{name} {told}" for name, told in row["view"].items())
        return cls(row["dataset"], view, row["metric"], row["method"], row["batching"])

    @property
    def row(self) -> tuple[str, str]:
        return self.method, self.batching

    @property
    def column(self) -> tuple[str, str, str]:
        return self.dataset, self.view, self.metric


@dataclass(frozen=True, eq=False)
class Pick:
    """The chosen setting of a place, and among how many it was chosen."""

    chosen: Tried
    num_settings: int


def picks(rows: Iterable[Row]) -> dict[Place, Pick]:
    """The best setting by validation of each place."""
    groups: dict[Place, list[Row]] = {}
    for row in rows:
        groups.setdefault(Place.of(row), []).append(row)
    return {place: pick(group) for place, group in groups.items()}


def pick(rows: list[Row]) -> Pick:
    """The best of the settings that have the most splits."""
    settings = tried(rows)
    most = max(len(one.runs) for one in settings)
    whole = [one for one in settings if len(one.runs) == most]
    chosen = select(whole)
    assert chosen is not None
    return Pick(chosen, len(whole))


def everything(found: Mapping[Place, Pick]) -> Document:
    """The table of all places."""
    rows = sorted({place.row for place in found})
    columns = sorted({place.column for place in found})
    at = {(place.row, place.column): one for place, one in found.items()}
    scores = {
        str(row): {str(column): score(at.get((row, column))) for column in columns}
        for row in rows
    }
    told = shaded(scores, SHADED) if scores else {}
    return {
        "name": "everything",
        "title": "Everything that was run",
        "shaded": SHADED,
        "rows": [heading(*row) for row in rows],
        "columns": [
            {"label": label(*column), "metric": column[2]} for column in columns
        ],
        "cells": [
            [
                entry(told[str(row)][str(column)], at.get((row, column)))
                for column in columns
            ]
            for row in rows
        ],
        "rankings": rankings(
            [told[str(row)] for row in rows], [str(one) for one in columns]
        ),
    }


def heading(method: str, batching: str) -> Document:
    """What is told of a row."""
    told = method if batching == WHOLE else f"{method}, {batching}"
    kind = family(method)
    return {"label": told, "method": method, "family": kind, "batching": batching}


def label(dataset: str, view: str, metric: str) -> str:
    """What a column is called."""
    return f"{dataset} ({view})" if view else dataset


def score(pick: Pick | None) -> Score:
    """The score of a place; an empty one where nothing was run."""
    if pick is None:
        return Score()
    return Score(mean=pick.chosen.test, std=pick.chosen.std)


def entry(told: Score, pick: Pick | None) -> Document | None:
    """The cell of a place, where anything was run."""
    return cell(told, pick.chosen, pick.num_settings, None) if pick else None
