"""Results tables from the database, and the runs behind each number."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from unalike.device import CHANGES
from unalike.errors import UserError, did_you_mean, lookup
from unalike.experiments.config import FULL_BATCH, config_from_dict
from unalike.experiments.database import ResultsDatabase, Row, result_from_row
from unalike.experiments.recipe import PaperTable, Recipe, RecipeCell
from unalike.experiments.result import command_line
from unalike.experiments.selection import (
    CellSelection,
    CellSelector,
    ConfigRuns,
    SelectionOptions,
)
from unalike.reports.tables import (
    HIGHLIGHT_RULES,
    PublishedCell,
    ResultTable,
    ScoreCell,
)
from unalike.training.state import Training

LEGEND = (
    "test mean ± standard deviation over splits of the setting with the best mean "
    "validation score (printed, difference in printed standard deviations); shaded: "
    "{}"
)
PRINTED_RANKED = ", where printed numbers stand in for those that we do not have"

DEFAULT_PRECISION = Training().precision

DAGGER_LEGEND = "; †: the paper evaluates GraphSAINT on ten random parts"

Rows = Mapping[Any, Mapping[Any, ScoreCell]]


def results_table(
    table: PaperTable,
    recipes: Sequence[Recipe],
    results: ResultsDatabase,
    query: SelectionOptions,
) -> ResultTable:
    """A results table; missing results are ranked by their published numbers."""
    rows: dict[str, dict[str, ScoreCell]] = {}
    remarks: list[str] = []
    selector = CellSelector(results, query)
    runs: dict[str, list[Row]] = {}
    has_numbers: dict[str, bool] = defaultdict(bool)
    for recipe in recipes:
        rows[recipe.row] = {}
        for column, cell in recipe.cells.items():
            selection = selector.select(recipe, cell)
            sourced = table.by_dataset and recipe.method is None
            kind = PublishedCell if sourced else ScoreCell
            rows[recipe.row][column] = score_cell(cell, selection, kind)
            name = cell_name(table, recipe.row, column)
            remarks += incomplete_grid_note(name, selection)
            if selection.chosen:
                runs[name] = selection.chosen.runs
            has_numbers[cell.dataset] |= selection.chosen is not None
    for dataset, has in has_numbers.items():
        remarks += selector.notes(dataset, has_numbers=has)
    ranked = highlight_best(with_relative_errors(rows, recipes), table.shaded)
    cells_by_row = transposed(ranked) if table.by_dataset else ranked
    daggers = [name for name in next(iter(rows.values())) if name in table.daggers]
    shaded_printed = any(
        cell.highlighted and cell.mean is None
        for cells in cells_by_row.values()
        for cell in cells.values()
    )
    ranked_note = PRINTED_RANKED * (shaded_printed and not table.by_dataset)
    legend = (table.legend or LEGEND).format(table.shaded) + ranked_note
    report = ResultTable(
        table.title,
        cells_by_row,
        {
            f"{row} {column}": cell.missing
            for row, cells in cells_by_row.items()
            for column, cell in cells.items()
            if cell.missing and not isinstance(cell, PublishedCell)
        },
        remarks,
        legend=legend + (DAGGER_LEGEND if daggers else ""),
        axes=("dataset", "method") if table.by_dataset else ("method", "dataset"),
        daggers=daggers,
    )
    notes = [*precision_notes(report, runs), *changed_source_note(runs)]
    return replace(report, remarks=[*table.notes, *remarks, *notes])


def cell_name(table: PaperTable, row: str, column: str) -> str:
    """The name of a method's cell of a dataset: its row and its column."""
    return f"{column} {row}" if table.by_dataset else f"{row} {column}"


def transposed(rows: Rows) -> dict[str, dict[str, ScoreCell]]:
    """The cells by column and row."""
    columns = next(iter(rows.values()))
    return {
        column: {name: cells[column] for name, cells in rows.items()}
        for column in columns
    }


def precision_notes(
    report: ResultTable, runs: Mapping[str, Sequence[Row]]
) -> Iterator[str]:
    """Precisions other than the default, each with the cells computed in it."""
    cells_by_precision: dict[str, list[str]] = {}
    for cell, rows in runs.items():
        precision = rows[0]["options"].get("precision", DEFAULT_PRECISION)
        cells_by_precision.setdefault(precision, []).append(cell)
    cells_by_precision.pop(DEFAULT_PRECISION, None)
    for precision, cells in cells_by_precision.items():
        yield f"in {precision}, not {DEFAULT_PRECISION}: {report.cell_names(cells)}"


def changed_source_note(runs: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """How many runs of the table were made by a source that no commit contains."""
    commits = [row["commit"] for rows in runs.values() for row in rows]
    changed = sum(commit.endswith(CHANGES) for commit in commits)
    if changed:
        yield (
            f"{changed:,} of the {len(commits):,} runs of these numbers name a commit "
            "whose files had been changed, so that the exact source is not known"
        )


def score_cell(
    cell: RecipeCell, selection: CellSelection, kind: type[ScoreCell] = ScoreCell
) -> ScoreCell:
    """The cell of a selected configuration and its published number."""
    chosen = selection.chosen
    return kind(
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


def highlight_best(rows: Rows, rule: str) -> dict[Any, dict[Any, ScoreCell]]:
    """The rows with the best cells of each column highlighted."""
    best = lookup(HIGHLIGHT_RULES, rule, "shading")
    result = {name: dict(cells) for name, cells in rows.items()}
    for column in {column for cells in rows.values() for column in cells}:
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
    selector = CellSelector(results, query)
    return [
        explain_cell(recipe, column, cell, selector.select(recipe, cell))
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
    return {
        **document,
        "setting": config_from_dict(rows[0]).describe(),
        "options": {**rows[0]["options"], **rows[0]["view"]},
        "valid": chosen.valid,
        "test": chosen.test,
        "std": chosen.std,
        "command": command_of(chosen, cell.dataset),
        "runs": [{name: row[name] for name in ("key", *RUN_COLUMNS)} for row in rows],
    }


def command_of(chosen: ConfigRuns, dataset: str) -> str:
    """The command that repeats the runs of a configuration."""
    splits = ",".join(str(row["split"]) for row in chosen.runs)
    first = result_from_row(chosen.runs[0])
    return command_line(first, splits=splits, dataset=dataset)


def _names(recipe: Recipe) -> set[str]:
    return {recipe.row, recipe.name.rpartition("/")[2], str(recipe.method)}


def _cells(
    recipes: Sequence[Recipe], method: str, dataset: str
) -> Iterator[tuple[Recipe, str, RecipeCell]]:
    for recipe in recipes:
        for column, cell in recipe.cells.items():
            if method in _names(recipe) and dataset in (column, cell.dataset):
                yield recipe, column, cell
