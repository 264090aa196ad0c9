"""The paper's results tables from the database, and the runs behind each number."""

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
    """A results table; missing results are ranked by their published numbers."""
    rows: dict[str, dict[str, ScoreCell]] = {}
    remarks: list[str] = []
    for recipe in recipes:
        rows[recipe.row] = {}
        for column, cell in recipe.cells.items():
            selection = select_for_cell(recipe, cell, results, query)
            rows[recipe.row][column] = score_cell(cell, selection)
            remarks += incomplete_grid_note(f"{recipe.row} {column}", selection)
    cells_by_row = highlight_best(with_relative_errors(rows, recipes), table.shaded)
    return ResultTable(
        table.title,
        cells_by_row,
        {
            f"{row} {column}": cell.missing
            for row, cells in cells_by_row.items()
            for column, cell in cells.items()
            if cell.missing
        },
        remarks,
        legend=LEGEND.format(table.shaded),
        axes=("method", "dataset"),
    )


def score_cell(cell: RecipeCell, selection: CellSelection) -> ScoreCell:
    """The cell of a selected configuration and its published number."""
    chosen = selection.chosen
    return ScoreCell(
        mean=chosen.test if chosen else None,
        std=chosen.std if chosen else None,
        printed_mean=cell.mean,
        printed_std=cell.std,
        printed_relative_error=cell.relative_error,
        quoted=cell.quoted,
        limit=cell.limit,
        missing=selection.missing,
    )


def incomplete_grid_note(where: str, selection: CellSelection) -> list[str]:
    """A note if a configuration was selected from an incomplete grid."""
    complete, grid_size = selection.num_complete, selection.grid_size
    if not selection.chosen or grid_size in (None, complete):
        return []
    return [f"{where}: chosen among {complete} of {grid_size} settings"]


def highlight_best(rows: Rows, rule: str) -> dict[str, dict[str, ScoreCell]]:
    """The rows with the best cells of each column highlighted."""
    best = lookup(HIGHLIGHT_RULES, rule, "shading")
    result = {name: dict(cells) for name, cells in rows.items()}
    for column in next(iter(rows.values())):
        names = [name for name, cells in rows.items() if column in cells]
        for index in best([rows[name][column].value for name in names]):
            cell = rows[names[index]][column]
            result[names[index]][column] = replace(cell, highlighted=True)
    return result


def with_relative_errors(rows: Rows, recipes: Sequence[Recipe]) -> Rows:
    """The rows with the loss of minibatch training, where the paper has one."""
    full_batch = {r.method: r.row for r in recipes if r.batching == FULL_BATCH}
    result = {name: dict(cells) for name, cells in rows.items()}
    for recipe in recipes:
        for column, cell in result[recipe.row].items():
            if cell.printed_relative_error is None or cell.mean is None:
                continue
            full = rows[full_batch[recipe.method]][column].mean
            if full:
                loss = 100 * (full - cell.mean) / full
                result[recipe.row][column] = replace(cell, relative_error=loss)
    return result


# The runs behind a number.


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
    method_and_dataset: tuple[str, str],
    results: ResultsDatabase,
    query: SelectionOptions,
) -> list[dict[str, Any]]:
    """The selected configuration and the runs of the cells of a method and dataset."""
    cells = list(_cells(recipes, *method_and_dataset))
    if not cells:
        known = {name for recipe in recipes for name in _names(recipe)}
        known |= {column for recipe in recipes for column in recipe.cells}
        unknown = [name for name in method_and_dataset if name not in known]
        hint = "".join(did_you_mean(name, known) for name in unknown)
        raise UserError(f"The table has no cell {' '.join(method_and_dataset)}.{hint}")
    return [
        explain_cell(
            recipe, column, cell, select_for_cell(recipe, cell, results, query)
        )
        for recipe, column, cell in cells
    ]


def explain_cell(
    recipe: Recipe, column: str, cell: RecipeCell, selection: CellSelection
) -> dict[str, Any]:
    """The configuration, the command line and the runs behind one number."""
    document: dict[str, Any] = {
        "row": recipe.row,
        "column": column,
        "printed": cell.mean,
        "settings": selection.num_complete,
        "of": selection.grid_size,
    }
    chosen = selection.chosen
    if chosen is None:
        return {**document, "missing": selection.missing}
    rows = chosen.runs
    splits = ",".join(str(row["split"]) for row in rows)
    return {
        **document,
        "setting": config_from_dict(rows[0]).describe(),
        "options": {**rows[0]["options"], **rows[0]["view"]},
        "valid": chosen.valid,
        "test": chosen.test,
        "std": chosen.std,
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
