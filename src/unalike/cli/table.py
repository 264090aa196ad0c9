"""`unalike table`: print a table of our numbers with the published ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import tyro

from unalike.cli.console import (
    DEFAULT_DATABASE,
    OUT,
    bold,
    print_columns,
    print_json,
    print_notes,
    progress_bar,
)
from unalike.display import Column
from unalike.errors import lookup
from unalike.experiments.recipe import find_recipes, own_table, paper_tables
from unalike.reports.dataset_tables import TABLES
from unalike.reports.tables import FORMATS, ResultTable, csv_text


def command(
    table: Annotated[str, tyro.conf.Positional],
    /,
    *,
    format: str = "rich",
    results: str = DEFAULT_DATABASE,
    settings: str | None = None,
    variant: str = "",
    seed: str = "most",
    on: tuple[str, ...] = (),
    explain: tuple[str, str] | None = None,
    data: Path | None = None,
    json: bool = False,
) -> None:
    """Print a table of our numbers with the published ones, most of them the paper's.

    Example: unalike table statistics-geom-gcn --format markdown

    Args:
        table: statistics-proposed, statistics-geom-gcn, statistics-homophilous,
            two-hop; of results full-batch, minibatch, gcn-minibatch, ablation,
            arxiv-coarse-fine, prior-datasets, homophilous, since-2021,
            state-of-the-art or views-ablation; or the file of a recipe, as in own.toml.
        format: Output format: rich, markdown, latex or csv.
        results: The database that a table of results is made from.
        settings: Select among the settings of the grid, or any that has results; by
            default the grid, and any in state-of-the-art.
        variant: Select from the grid of this name where there is one, as in appendix.
        seed: Runs of this seed; most: the seed with the most complete settings; any:
            the best of all seeds.
        on: Datasets instead of those of the paper, in a table of results.
        explain: METHOD DATASET: print the selected setting, its runs and its command.
        data: Folder of the raw files of datasets.
        json: Print one JSON document instead of a table.
    """
    result_tables = paper_tables()
    if table.endswith(".toml"):
        result_tables[table] = own_table(table)
    lookup({**TABLES, **result_tables}, table, "table")
    lookup({"rich": None, **FORMATS}, format, "format")
    if table in result_tables:
        from unalike.experiments.database import ResultsDatabase
        from unalike.experiments.selection import SelectionOptions
        from unalike.reports.result_tables import explain_cells, results_table

        query = SelectionOptions(
            settings=settings or result_tables[table].settings,
            variant=variant,
            seed=seed,
            data=data,
        )
        is_file = table.endswith(".toml")
        paper_table = result_tables[table]
        recipes = find_recipes([table]) if is_file else paper_table.recipes()
        if on:
            recipes = [one.on_datasets(on) for one in recipes if one.method]
        with ResultsDatabase.read(results) as database:
            if explain:
                cells = explain_cells(recipes, explain, database, query)
                print_explanations(cells, json=json)
                return
            report = results_table(result_tables[table], recipes, database, query)
    else:
        with progress_bar() as progress:
            report = TABLES[table](data=data, progress=progress)
    if json:
        print_json({"table": table, **report.to_json()})
    elif format == "rich":
        print_rich(report)
    else:
        if FORMATS[format] is csv_text:  # which has no place for notes
            print_notes(*report.notes)
        print(FORMATS[format](report))


def print_explanations(cells: list[dict[str, Any]], *, json: bool) -> None:
    """Print the selected configuration, the command and the runs of cells."""
    if json:
        print_json(cells)
        return
    for cell in cells:
        OUT.print(bold(f"{cell['row']} {cell['column']}"))
        if "missing" in cell:
            OUT.print(f"nothing: {cell['missing']}")
            continue
        setting = f"best of {cell['settings']} settings by validation: "
        OUT.print(setting + cell["setting"])
        OUT.print(f"{cell['command']}\n", soft_wrap=True)
        runs = cell["runs"]
        print_columns(
            [
                Column(name.replace("_", " "), [format_cell(run[name]) for run in runs])
                for name in runs[0]
            ],
            spare=("key", "commit", "device"),
        )


def format_cell(value: Any) -> str:
    """A value of a run as text."""
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def print_rich(report: ResultTable) -> None:
    """Print a table for a terminal."""
    OUT.print(f"{report.title}: {report.legend}.\n", soft_wrap=True)
    columns = zip(report.headings, *report.texts, strict=True)
    print_columns(
        [
            Column(heading, cells, align_right=index > 0)
            for index, (heading, *cells) in enumerate(columns)
        ]
    )
    if report.notes:
        OUT.print()
    for note in report.notes:
        OUT.print(f"• {note}.", soft_wrap=True, markup=False)
