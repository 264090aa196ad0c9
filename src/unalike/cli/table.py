"""`unalike table`: a table of the paper, ours beside the printed numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import tyro

from unalike.cli.console import OUT, RESULTS, answer, note, progress_bar, show
from unalike.errors import lookup
from unalike.experiments.cookbook import Printed, printed_tables
from unalike.experiments.recipe import Recipe
from unalike.reports.layout import Column
from unalike.reports.report import FORMATS, Report
from unalike.reports.statistics import TABLES


def command(
    table: Annotated[str, tyro.conf.Positional],
    /,
    *,
    format: str = "rich",
    results: str = RESULTS,
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
    printed = printed_tables()
    lookup({**TABLES, **printed}, table, "table")
    write = lookup(SHOWN_AS, format, "format")
    if table in printed:
        from unalike.experiments.results import Results
        from unalike.experiments.standing import Query
        from unalike.reports.choice import choices
        from unalike.reports.scores import scores

        query = Query(settings=settings, variant=variant, data=data)
        rows = rows_of(printed[table], on)
        kept = Results.read(results)
        if explain:
            tell_choices(choices(rows, explain, kept, query), json=json)
            return
        report = scores(printed[table], rows, kept, query)
    else:
        with progress_bar() as progress:
            report = TABLES[table](data=data, progress=progress)
    note(report.remarks)
    if json:
        answer({"table": table, **report.document()})
        return
    if report.missing:
        note([absent(report)])
    write(report)


def rows_of(table: Printed, on: tuple[str, ...]) -> list[Recipe]:
    """The rows of a table of results, on other datasets where that is wanted."""
    recipes = table.recipes()
    if not on:
        return recipes
    return [recipe.on(on) for recipe in recipes if recipe.method]


def tell_choices(found: list[dict[str, Any]], *, json: bool) -> None:
    """Print where numbers come from."""
    if json:
        answer(found)
        return
    for one in found:
        OUT.print(f"[bold]{one['row']} {one['column']}[/]")
        if "missing" in one:
            OUT.print(f"nothing: {one['missing']}", markup=False)
            continue
        chosen = f"best of {one['settings']} settings by validation: {one['setting']}"
        OUT.print(chosen, markup=False)
        OUT.print(f"{one['command']}\n", soft_wrap=True, markup=False)
        show(
            [
                Column(name.replace("_", " "), [cell(row[name]) for row in one["runs"]])
                for name in one["runs"][0]
            ],
            spare=("key", "commit", "device"),
        )


def cell(value: Any) -> str:
    """A fact of a run as a table shows it."""
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def absent(report: Report) -> str:
    """What a report lacks, in one line."""
    if len(report.missing) <= len(report.rows):
        return f"no data of {', '.join(report.missing)}; --json tells why."
    reasons = Counter(report.missing.values())
    told = ", ".join(f"{why} ({count})" for why, count in reasons.items())
    return f"{len(report.missing)} cells without data: {told}."


def show_rich(report: Report) -> None:
    """Print a report for a terminal."""
    cells = list(zip(*report.texts, strict=True))
    OUT.print(f"{report.title}: {report.legend}.\n", soft_wrap=True)
    show(
        [
            Column(heading, column, right=place > 0)
            for place, (heading, column) in enumerate(
                zip(report.headings, cells, strict=True)
            )
        ]
    )


def as_text(write: Callable[[Report], str]) -> Callable[[Report], None]:
    """Print a report in one of the formats of files."""
    return lambda report: print(write(report))


SHOWN_AS: dict[str, Callable[[Report], None]] = {
    "rich": show_rich,
    **{name: as_text(write) for name, write in FORMATS.items()},
}
