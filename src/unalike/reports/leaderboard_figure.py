"""Leaderboard figure: the test score of every method on each dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from unalike.datasets import DATASETS
from unalike.errors import UserError
from unalike.experiments.config import FULL_BATCH
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.recipe import paper_tables
from unalike.experiments.selection import SelectionOptions
from unalike.methods import METHODS
from unalike.reports.plotting import CLASSES, panels, with_style
from unalike.reports.result_tables import results_table
from unalike.reports.tables import ScoreCell

TABLE = "full-batch"
"""The table of the paper whose rows are the methods of the figure."""
HOMOPHILOUS = "homophilous"
"""The table of the paper whose datasets are left out unless they are named."""
MIN_SHARE_OF_METHODS = 0.5
"""A dataset needs this share of the methods of the dataset that has the most."""

FAMILIES = {
    "row-wise": ("row-wise: own features, own list of neighbours", CLASSES[0], "o"),
    "message passing": ("message passing", CLASSES[1], "s"),
    "closed form": ("label propagation", CLASSES[2], "^"),
    "after training": ("label propagation", CLASSES[2], "^"),
}
"""Legend, colour and marker of each family of methods."""


@dataclass(frozen=True)
class Leaderboard:
    """Scores by method and dataset, the best method first."""

    datasets: list[str]
    rows: dict[str, dict[str, ScoreCell]]
    families: dict[str, str]


def load_leaderboard(
    results: ResultsDatabase, datasets: Sequence[str], query: SelectionOptions
) -> Leaderboard:
    """Read the score of each method on each dataset from a results database."""
    datasets = list(datasets) or widest_datasets(results)
    table = paper_tables()[TABLE]
    rows_of_table = [one for one in table.recipes() if one.is_implemented]
    recipes = [recipe.on_datasets(datasets) for recipe in rows_of_table]
    report = results_table(table, recipes, results, query)
    scored = {
        name: {
            dataset: score
            for dataset, score in cells.items()
            if isinstance(score, ScoreCell) and score.mean is not None
        }
        for name, cells in report.rows.items()
    }
    rows = {name: cells for name, cells in scored.items() if cells}
    shown = [d for d in datasets if any(d in row for row in rows.values())]
    if not shown:
        asked = f" on {', '.join(datasets)}" if datasets else ""
        raise UserError(
            f"The results database holds no complete results of the methods of the "
            f"table {TABLE}{asked}; `unalike results import` or `unalike sweep` add "
            "some."
        )
    order = sorted(rows, key=lambda name: mean_gap(name, rows))
    families = {recipe.row: METHODS[str(recipe.method)].family for recipe in recipes}
    return Leaderboard(shown, {name: rows[name] for name in order}, families)


def widest_datasets(results: ResultsDatabase) -> list[str]:
    """Non-homophilous datasets on which the most methods have results."""
    excluded = {
        cell.dataset
        for recipe in paper_tables()[HOMOPHILOUS].recipes()
        for cell in recipe.cells.values()
    }
    methods: dict[str, set[str]] = {}
    for row in results.runs(batching=FULL_BATCH):
        if row["dataset"] not in excluded:
            methods.setdefault(row["dataset"], set()).add(row["method"])
    least = MIN_SHARE_OF_METHODS * max(map(len, methods.values()), default=0)
    return [dataset for dataset, names in methods.items() if len(names) >= least]


def mean_gap(name: str, rows: Mapping[str, Mapping[str, ScoreCell]]) -> float:
    """Mean over its datasets of how far a method is below the best, in points."""
    gaps = []
    for dataset, score in rows[name].items():
        best = max(row[dataset].mean or 0.0 for row in rows.values() if dataset in row)
        gaps.append(best - (score.mean or 0.0))
    return mean(gaps)


@with_style
def plot_leaderboard(board: Leaderboard) -> Any:
    """A dot for the mean and a line for the standard deviation, dataset by dataset."""
    from matplotlib.lines import Line2D

    names = list(board.rows)
    figure, axes = panels(
        len(board.datasets), columns=3, size=(3.7, 1.1 + 0.23 * len(names))
    )
    for panel, (axis, dataset) in enumerate(zip(axes, board.datasets, strict=True)):
        _plot_dataset(axis, board, dataset)
        axis.set_yticks(range(len(names)), names if panel % 3 == 0 else [])
        axis.tick_params(axis="y", length=0)
    figure.supxlabel(
        "mean ± standard deviation over the splits; "
        "first the methods that are nearest to the best on average",
        fontsize=8,
    )
    shown = {board.families[name] for name in names}
    kinds = dict.fromkeys(kind for name, kind in FAMILIES.items() if name in shown)
    handles = [
        Line2D([], [], color=colour, marker=marker, ls="", label=label)
        for label, colour, marker in kinds
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    return figure


def _plot_dataset(axis: Any, board: Leaderboard, dataset: str) -> None:
    """One panel: every method on one dataset."""
    scored = {
        name: cells[dataset] for name, cells in board.rows.items() if dataset in cells
    }
    best = max(score.mean or 0.0 for score in scored.values())
    right = max((score.mean or 0.0) + (score.std or 0.0) for score in scored.values())
    left = min((score.mean or 0.0) - (score.std or 0.0) for score in scored.values())
    for row, name in enumerate(board.rows):
        if row % 2 == 0:
            axis.axhspan(row - 0.5, row + 0.5, color="#f4f4f4", lw=0, zorder=0)
        if name not in scored:
            continue
        score = scored[name]
        _, colour, marker = FAMILIES[board.families[name]]
        style = {"fmt": marker, "ms": 5, "lw": 1.4, "color": colour}
        axis.errorbar(score.mean, row, xerr=score.std or 0.0, **style)
        axis.annotate(
            f"{score.mean:.1f}",
            (1, row),
            xycoords=("axes fraction", "data"),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            fontweight="bold" if score.mean == best else "normal",
        )
    margin = 0.05 * (right - left) or 1.0
    axis.set_xlim(left - margin, right + margin)
    axis.set_ylim(len(board.rows) - 0.5, -0.5)
    axis.xaxis.get_major_locator().set_params(integer=True)
    known = DATASETS.get(dataset)
    axis.set_xlabel(f"test {known.metric.name if known else 'score'}, percent")
    title = dataset
    if known and (counts := known.counts):
        title += f": {counts.num_nodes:,} nodes, {counts.num_edges:,} edges"
    axis.set_title(title)
