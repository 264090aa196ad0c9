"""Scores: the results tables, ours beside the printed numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from unalike.errors import lookup
from unalike.experiments.cookbook import Printed
from unalike.experiments.recipe import Cell, Recipe
from unalike.experiments.results import Results
from unalike.experiments.setting import WHOLE
from unalike.experiments.standing import Query, Standing, standing
from unalike.reports.report import Report
from unalike.reports.score import Score
from unalike.reports.shading import SHADINGS

LEGEND = (
    "test mean ± standard deviation over splits of the setting with the best mean "
    "validation score (printed, difference in printed standard deviations); shaded: {}"
)

Rows = Mapping[str, Mapping[str, Score]]


def scores(
    table: Printed, recipes: Sequence[Recipe], results: Results, query: Query
) -> Report:
    """A results table; what is missing is ranked by its printed number."""
    rows: dict[str, dict[str, Score]] = {}
    remarks: list[str] = []
    for recipe in recipes:
        rows[recipe.row] = {}
        for column, cell in recipe.cells.items():
            found = standing(recipe, cell, results, query)
            rows[recipe.row][column] = score(cell, found)
            remarks += remark(f"{recipe.row} {column}", found)
    told = shaded(with_errors(rows, recipes), table.shaded)
    return Report(
        table.title,
        told,
        {
            f"{row} {column}": cell.missing
            for row, cells in told.items()
            for column, cell in cells.items()
            if cell.missing
        },
        remarks,
        legend=LEGEND.format(table.shaded),
        axes=("method", "dataset"),
    )


def score(cell: Cell, found: Standing) -> Score:
    """A cell of the table."""
    chosen = found.chosen
    return Score(
        mean=chosen.test if chosen else None,
        std=chosen.std if chosen else None,
        printed_mean=cell.mean,
        printed_std=cell.std,
        printed_relative_error=cell.relative_error,
        quoted=cell.quoted,
        limit=cell.limit,
        missing=found.missing,
    )


def remark(where: str, found: Standing) -> list[str]:
    """What should be known of a choice among too few settings."""
    if not found.chosen or found.num_wanted in (None, found.num_complete):
        return []
    return [
        f"{where}: chosen among {found.num_complete} of {found.num_wanted} settings"
    ]


def shaded(rows: Rows, rule: str) -> dict[str, dict[str, Score]]:
    """The rows with the best cells of each column marked."""
    best = lookup(SHADINGS, rule, "shading")
    marked = {name: dict(cells) for name, cells in rows.items()}
    for column in next(iter(rows.values())):
        there = [name for name, cells in rows.items() if column in cells]
        for place in best([rows[name][column].value for name in there]):
            name = there[place]
            marked[name][column] = replace(rows[name][column], shaded=True)
    return marked


def with_errors(rows: Rows, recipes: Sequence[Recipe]) -> Rows:
    """The rows with what minibatches lose, where the paper prints that."""
    whole = {r.method: r.row for r in recipes if r.batching == WHOLE}
    told = {name: dict(cells) for name, cells in rows.items()}
    for recipe in recipes:
        for column, cell in told[recipe.row].items():
            if cell.printed_relative_error is None or cell.mean is None:
                continue
            full = rows[whole[recipe.method]][column].mean
            if full:
                lost = 100 * (full - cell.mean) / full
                told[recipe.row][column] = replace(cell, relative_error=lost)
    return told
