"""The paper's results tables from the database; explain where a number comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from unalike.errors import UserError, did_you_mean, lookup
from unalike.experiments.config import FULL_BATCH, config_from_dict
from unalike.experiments.database import ResultsDatabase, result_from_row
from unalike.experiments.recipe import PaperTable, Recipe, RecipeCell
from unalike.experiments.result import command_line
from unalike.experiments.selection import (
    CellSelection,
    SelectionOptions,
    select_for_cell,
)
from unalike.reports.tables import HIGHLIGHT_RULES, ResultTable, ScoreCell

# Scores: the results tables, ours beside the printed numbers.


LEGEND = (
    "test mean ± standard deviation over splits of the setting with the best mean "
    "validation score (printed, difference in printed standard deviations); shaded: {}"
)

Rows = Mapping[str, Mapping[str, ScoreCell]]


def results_table(
    table: PaperTable,
    recipes: Sequence[Recipe],
    results: ResultsDatabase,
    query: SelectionOptions,
) -> ResultTable:
    """A results table; what is missing is ranked by its printed number."""
    rows: dict[str, dict[str, ScoreCell]] = {}
    remarks: list[str] = []
    for recipe in recipes:
        rows[recipe.row] = {}
        for column, cell in recipe.cells.items():
            found = select_for_cell(recipe, cell, results, query)
            rows[recipe.row][column] = score_cell(cell, found)
            remarks += incomplete_grid_note(f"{recipe.row} {column}", found)
    told = highlight_best(with_relative_errors(rows, recipes), table.shaded)
    return ResultTable(
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


def score_cell(cell: RecipeCell, found: CellSelection) -> ScoreCell:
    """A cell of the table."""
    chosen = found.chosen
    return ScoreCell(
        mean=chosen.test if chosen else None,
        std=chosen.std if chosen else None,
        printed_mean=cell.mean,
        printed_std=cell.std,
        printed_relative_error=cell.relative_error,
        quoted=cell.quoted,
        limit=cell.limit,
        missing=found.missing,
    )


def incomplete_grid_note(where: str, found: CellSelection) -> list[str]:
    """What should be known of a choice among too few settings."""
    if not found.chosen or found.grid_size in (None, found.num_complete):
        return []
    return [f"{where}: chosen among {found.num_complete} of {found.grid_size} settings"]


def highlight_best(rows: Rows, rule: str) -> dict[str, dict[str, ScoreCell]]:
    """The rows with the best cells of each column marked."""
    best = lookup(HIGHLIGHT_RULES, rule, "shading")
    marked = {name: dict(cells) for name, cells in rows.items()}
    for column in next(iter(rows.values())):
        there = [name for name, cells in rows.items() if column in cells]
        for place in best([rows[name][column].value for name in there]):
            name = there[place]
            marked[name][column] = replace(rows[name][column], highlighted=True)
    return marked


def with_relative_errors(rows: Rows, recipes: Sequence[Recipe]) -> Rows:
    """The rows with what minibatches lose, where the paper prints that."""
    whole = {r.method: r.row for r in recipes if r.batching == FULL_BATCH}
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


# Choice: where a number of a results table comes from.


RUN_COLUMNS = (
    "split",
    "train",
    "valid",
    "test",
    "best_epoch",
    "seconds",
    "device",
    "commit",
)


def explain_cells(
    recipes: Sequence[Recipe],
    asked: tuple[str, str],
    results: ResultsDatabase,
    query: SelectionOptions,
) -> list[dict[str, Any]]:
    """The chosen setting of every cell of a method and a dataset, with its runs."""
    found = list(_cells(recipes, *asked))
    if not found:
        known = {name for recipe in recipes for name in _names(recipe)}
        known |= {column for recipe in recipes for column in recipe.cells}
        hint = "".join(did_you_mean(word, known) for word in asked if word not in known)
        raise UserError(f"The table has no cell {asked[0]} {asked[1]}.{hint}")
    return [
        explain_cell(
            recipe, column, cell, select_for_cell(recipe, cell, results, query)
        )
        for recipe, column, cell in found
    ]


def explain_cell(
    recipe: Recipe, column: str, cell: RecipeCell, found: CellSelection
) -> dict[str, Any]:
    """All about one number."""
    told: dict[str, Any] = {
        "row": recipe.row,
        "column": column,
        "printed": cell.mean,
        "settings": found.num_complete,
        "of": found.grid_size,
    }
    if found.chosen is None:
        return {**told, "missing": found.missing}
    rows = found.chosen.runs
    splits = ",".join(str(row["split"]) for row in rows)
    return {
        **told,
        "setting": config_from_dict(rows[0]).describe(),
        "options": {**rows[0]["options"], **rows[0]["view"]},
        "valid": found.chosen.valid,
        "test": found.chosen.test,
        "std": found.chosen.std,
        "command": command_line(result_from_row(rows[0]), splits=splits),
        "runs": [{name: row[name] for name in ("key", *RUN_COLUMNS)} for row in rows],
    }


def _names(recipe: Recipe) -> set[str]:
    return {recipe.row, recipe.name.rpartition("/")[2], str(recipe.method)}


def _cells(
    recipes: Sequence[Recipe], method: str, dataset: str
) -> Iterator[tuple[Recipe, str, RecipeCell]]:
    for recipe in recipes:
        for column, cell in recipe.cells.items():
            if method in _names(recipe) and dataset in (column, cell.dataset):
                yield recipe, column, cell
