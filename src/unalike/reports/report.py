"""Report: a table of cells, and the formats it can be written in."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

from unalike.reports.cell import Cell
from unalike.reports.plain import plain

LEGEND = "ours (printed); * differs from the printed number"


@dataclass(frozen=True)
class Report:
    """Rows of cells by dataset and column."""

    title: str
    rows: Mapping[str, Mapping[str, Cell]]
    missing: Mapping[str, str]
    """Why a dataset has no data."""
    remarks: Sequence[str] = ()
    """What should be known about the data of the others."""

    @property
    def columns(self) -> list[str]:
        return list(next(iter(self.rows.values())))

    @property
    def headings(self) -> list[str]:
        plain_names = (name.removeprefix("num_") for name in self.columns)
        return ["dataset", *(name.replace("_", " ") for name in plain_names)]

    @property
    def texts(self) -> list[list[str]]:
        return [
            [name, *(cell.text for cell in cells.values())]
            for name, cells in self.rows.items()
        ]

    def document(self) -> dict[str, Any]:
        """The report as one JSON document."""
        rows = {
            dataset: {
                column: {
                    "ours": cell.ours,
                    "printed": float(cell.printed) if cell.printed else None,
                    "deviates": cell.deviates,
                }
                for column, cell in cells.items()
            }
            for dataset, cells in self.rows.items()
        }
        told = {"missing": dict(self.missing), "remarks": list(self.remarks)}
        return plain({"title": self.title, "rows": rows, **told})


def markdown(report: Report) -> str:
    """A Markdown table."""
    rule = [":--", *["--:"] * len(report.columns)]
    lines = [report.headings, rule, *report.texts]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{report.title}: {LEGEND.replace('*', chr(92) + '*')}.\n\n{table}"


def latex(report: Report) -> str:
    """A LaTeX table in the style of booktabs."""
    body = "\n".join(" & ".join(line) + r" \\" for line in report.texts)
    heads = " & ".join(report.headings) + r" \\"
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{report.title}: {LEGEND}.}}",
            rf"\begin{{tabular}}{{l{'r' * len(report.columns)}}}",
            r"\toprule",
            heads,
            r"\midrule",
            body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def comma_separated(report: Report) -> str:
    """One line for each cell, with all digits."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["dataset", "statistic", "ours", "printed", "deviates"])
    for dataset, cells in report.rows.items():
        for column, cell in cells.items():
            ours = "" if cell.ours is None else cell.ours
            line = [dataset, column, ours, cell.printed, str(cell.deviates).lower()]
            writer.writerow(line)
    return text.getvalue().rstrip("\n")


FORMATS: dict[str, Callable[[Report], str]] = {
    "markdown": markdown,
    "latex": latex,
    "csv": comma_separated,
}
