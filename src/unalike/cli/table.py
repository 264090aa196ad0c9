"""`unalike table`: a table of the paper, ours beside the printed numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import tyro
from rich.table import Table

from unalike.cli.console import OUT, answer, progress_bar
from unalike.errors import lookup
from unalike.reports.report import FORMATS, LEGEND, Report
from unalike.reports.statistics import TABLES


def command(
    table: Annotated[str, tyro.conf.Positional],
    /,
    *,
    format: str = "rich",
    data: Path | None = None,
    json: bool = False,
) -> None:
    """Print a table of the paper, our numbers beside the printed ones.

    Example: unalike table statistics-geom-gcn --format markdown

    Args:
        table: statistics-proposed, statistics-geom-gcn, statistics-homophilous or
            two-hop.
        format: How to write it: rich, markdown, latex or csv.
        data: Folder of the raw files of datasets.
        json: Print one JSON document instead of a table.
    """
    make = lookup(TABLES, table, "table")
    show = lookup(SHOWN_AS, format, "format")
    with progress_bar() as progress:
        report = make(data=data, progress=progress)
    if json:
        answer({"table": table, **report.document()})
    else:
        show(report)


def show_rich(report: Report) -> None:
    """Print a report for a terminal, deviations in bold."""
    shown = Table(title=report.title, caption=LEGEND, box=None, pad_edge=False)
    for place, heading in enumerate(report.headings):
        shown.add_column(heading, justify="right" if place else "left")
    for line in report.texts:
        shown.add_row(*(f"[bold]{text}[/]" if "*" in text else text for text in line))
    OUT.print(shown)
    for dataset, reason in report.missing.items():
        OUT.print(f"no data of {dataset}: {reason}", markup=False, style="dim")


def as_text(write: Callable[[Report], str]) -> Callable[[Report], None]:
    """Print a report in one of the formats of files."""
    return lambda report: print(write(report))


SHOWN_AS: dict[str, Callable[[Report], None]] = {
    "rich": show_rich,
    **{name: as_text(write) for name, write in FORMATS.items()},
}
