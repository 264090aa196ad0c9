"""`unalike table`: a table of the paper, ours beside the printed numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import tyro

from unalike.cli.console import (
    DEFAULT_DATABASE,
    OUT,
    print_columns,
    print_json,
    print_notes,
    progress_bar,
)
from unalike.errors import lookup
from unalike.experiments.recipe import PaperTable, Recipe, paper_tables
from unalike.reports.dataset_tables import TABLES
from unalike.reports.tables import FORMATS, ResultTable
from unalike.display import Column


def command(
    table: Annotated[str, tyro.conf.Positional],
    /,
    *,
    format: str = "rich",
    results: str = DEFAULT_DATABASE,
    settings: str = "grid",
    variant: str = "",
    on: tuple[str, ...] = (),
    explain: tuple[str, str] | None = None,
    data: Path | None = None,
    json: bool = False,
) -> None:
    """Print a table of the paper, our numbers beside the printed ones.

    Example: unalike table statistics-geom-gcn --format markdown

    Args:
        table: statistics-proposed, statistics-geom-gcn, statistics-homophilous,
            two-hop; of results full-batch, minibatch, gcn-minibatch, ablation,
            arxiv-coarse-fine, prior-datasets or homophilous.
        format: How to write it: rich, markdown, latex or csv.
        results: The database that a table of results is made from.
        settings: Choose among the settings of the grid, or any that were tried.
        variant: Choose among the grid of this name where there is one, as in appendix.
        on: These datasets instead of the printed ones, in a table of results.
        explain: METHOD DATASET: the setting that was chosen, its runs, their command.
        data: Folder of the raw files of datasets.
        json: Print one JSON document instead of a table.
    """
    printed = paper_tables()
    lookup({**TABLES, **printed}, table, "table")
    write = lookup(WRITERS, format, "format")
    if table in printed:
        from unalike.experiments.database import ResultsDatabase
        from unalike.experiments.selection import SelectionOptions
        from unalike.reports.result_tables import explain_cells, results_table

        query = SelectionOptions(settings=settings, variant=variant, data=data)
        rows = rows_of(printed[table], on)
        kept = ResultsDatabase.read(results)
        if explain:
            print_explanations(explain_cells(rows, explain, kept, query), json=json)
            return
        report = results_table(printed[table], rows, kept, query)
    else:
        with progress_bar() as progress:
            report = TABLES[table](data=data, progress=progress)
    print_notes(report.remarks)
    if json:
        print_json({"table": table, **report.to_json()})
        return
    if report.missing:
        print_notes([missing_note(report)])
    write(report)


def rows_of(table: PaperTable, on: tuple[str, ...]) -> list[Recipe]:
    """The rows of a table of results, on other datasets where that is wanted."""
    recipes = table.recipes()
    if not on:
        return recipes
    return [recipe.on_datasets(on) for recipe in recipes if recipe.method]


def print_explanations(found: list[dict[str, Any]], *, json: bool) -> None:
    """Print where numbers come from."""
    if json:
        print_json(found)
        return
    for one in found:
        OUT.print(f"[bold]{one['row']} {one['column']}[/]")
        if "missing" in one:
            OUT.print(f"nothing: {one['missing']}", markup=False)
            continue
        chosen = f"best of {one['settings']} settings by validation: {one['setting']}"
        OUT.print(chosen, markup=False)
        OUT.print(f"{one['command']}\n", soft_wrap=True, markup=False)
        print_columns(
            [
                Column(name.replace("_", " "), [cell(row[name]) for row in one["runs"]])
                for name in one["runs"][0]
            ],
            spare=("key", "commit", "device"),
        )


def cell(value: Any) -> str:
    """A fact of a run as a table shows it."""
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def missing_note(report: ResultTable) -> str:
    """What a report lacks, in one line."""
    if len(report.missing) <= len(report.rows):
        return f"no data of {', '.join(report.missing)}; --json tells why."
    reasons = Counter(report.missing.values())
    told = ", ".join(f"{why} ({count})" for why, count in reasons.items())
    return f"{len(report.missing)} cells without data: {told}."


def show_rich(report: ResultTable) -> None:
    """Print a report for a terminal."""
    cells = list(zip(*report.texts, strict=True))
    OUT.print(f"{report.title}: {report.legend}.\n", soft_wrap=True)
    print_columns(
        [
            Column(heading, column, align_right=place > 0)
            for place, (heading, column) in enumerate(
                zip(report.headings, cells, strict=True)
            )
        ]
    )


def as_text(write: Callable[[ResultTable], str]) -> Callable[[ResultTable], None]:
    """Print a report in one of the formats of files."""
    return lambda report: print(write(report))


WRITERS: dict[str, Callable[[ResultTable], None]] = {
    "rich": show_rich,
    **{name: as_text(write) for name, write in FORMATS.items()},
}
