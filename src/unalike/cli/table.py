"""`unalike table`: a table of the paper, ours beside the printed numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import tyro

from unalike.cli.console import OUT, answer, note, progress_bar, show
from unalike.errors import lookup
from unalike.reports.layout import Column
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
    write = lookup(SHOWN_AS, format, "format")
    with progress_bar() as progress:
        report = make(data=data, progress=progress)
    note(report.remarks)
    if json:
        answer({"table": table, **report.document()})
        return
    if report.missing:
        note([f"no data of {', '.join(report.missing)}; --json tells why."])
    write(report)


def show_rich(report: Report) -> None:
    """Print a report for a terminal."""
    cells = list(zip(*report.texts, strict=True))
    OUT.print(f"{report.title}: {LEGEND}.\n", soft_wrap=True)
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
