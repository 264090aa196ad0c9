"""The table of all runs, whatever their configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from unalike.experiments.results import Row
from unalike.experiments.select import Tried, select, tried
from unalike.experiments.setting import WHOLE
from unalike.reports.score import Score
from unalike.reports.scores import shaded
from unalike.site.cell import Document, cell
from unalike.site.leaderboard import method_family
from unalike.site.ranking import rankings

SHADED = "best"


@dataclass(frozen=True, order=True)
class RunGroupKey:
    """The row and the column of a run."""

    dataset: str
    view: str
    metric: str
    method: str
    batching: str

    @classmethod
    def of(cls, row: Row) -> RunGroupKey:
        """The group of a run."""
        view = ", ".join(f"{name} {value}" for name, value in row["view"].items())
        return cls(row["dataset"], view, row["metric"], row["method"], row["batching"])

    @property
    def row(self) -> tuple[str, str]:
        return self.method, self.batching

    @property
    def column(self) -> tuple[str, str, str]:
        return self.dataset, self.view, self.metric


@dataclass(frozen=True, eq=False)
class BestConfig:
    """The selected configuration of a group, and the number it was selected from."""

    selected: Tried
    num_configs: int


def best_by_group(rows: Iterable[Row]) -> dict[RunGroupKey, BestConfig]:
    """The best configuration by validation of each group."""
    groups: dict[RunGroupKey, list[Row]] = {}
    for row in rows:
        groups.setdefault(RunGroupKey.of(row), []).append(row)
    return {key: best_of_group(group) for key, group in groups.items()}


def best_of_group(rows: list[Row]) -> BestConfig:
    """The best of the configurations that have the most splits."""
    configs = tried(rows)
    most = max(len(one.runs) for one in configs)
    complete = [one for one in configs if len(one.runs) == most]
    selected = select(complete)
    assert selected is not None
    return BestConfig(selected, len(complete))


def all_runs_table(groups: Mapping[RunGroupKey, BestConfig]) -> Document:
    """The table of all groups."""
    rows = sorted({key.row for key in groups})
    columns = sorted({key.column for key in groups})
    best = {(key.row, key.column): one for key, one in groups.items()}
    scores = {
        str(row): {str(column): score(best.get((row, column))) for column in columns}
        for row in rows
    }
    marked = shaded(scores, SHADED) if scores else {}
    return {
        "name": "all-runs",
        "title": "All runs",
        "shaded": SHADED,
        "rows": [row_header(*row) for row in rows],
        "columns": [
            {"label": label(*column), "metric": column[2]} for column in columns
        ],
        "cells": [
            [
                group_cell(marked[str(row)][str(column)], best.get((row, column)))
                for column in columns
            ]
            for row in rows
        ],
        "rankings": rankings(
            [marked[str(row)] for row in rows], [str(one) for one in columns]
        ),
    }


def row_header(method: str, batching: str) -> Document:
    """The label of a row and the keys that filter it."""
    return {
        "label": method if batching == WHOLE else f"{method}, {batching}",
        "method": method,
        "family": method_family(method),
        "batching": batching,
    }


def label(dataset: str, view: str, metric: str) -> str:
    """The label of a column."""
    return f"{dataset} ({view})" if view else dataset


def score(best: BestConfig | None) -> Score:
    """The score of a group; an empty one without runs."""
    if best is None:
        return Score()
    return Score(mean=best.selected.test, std=best.selected.std)


def group_cell(marked: Score, best: BestConfig | None) -> Document | None:
    """The cell of a group that has runs."""
    return cell(marked, best.selected, best.num_configs, None) if best else None
