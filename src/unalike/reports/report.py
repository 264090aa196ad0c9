"""Report: a table of cells, and the formats it can be written in."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any, Protocol, runtime_checkable

from unalike.display import Displayed, Sheet
from unalike.reports.plain import plain

LEGEND = "ours (printed); * differs from the printed number"


@runtime_checkable
class Shown(Protocol):
    """What a cell of a report tells."""

    @property
    def text(self) -> str:
        """The cell in a table."""

    @property
    def shaded(self) -> bool:
        """Is it one of the best?"""

    @property
    def facts(self) -> dict[str, Any]:
        """All of it, by name."""


@dataclass(frozen=True)
class Report(Displayed):
    """Rows of cells by name and column."""

    title: str
    rows: Mapping[str, Mapping[str, Shown]]
    missing: Mapping[str, str]
    """Why a row, or a cell, has no data."""
    remarks: Sequence[str] = ()
    """What should be known about the data of the others."""
    legend: str = LEGEND
    axes: tuple[str, str] = ("dataset", "statistic")
    """What the rows are, and what the columns are."""

    @property
    def columns(self) -> list[str]:
        return list(next(iter(self.rows.values())))

    @property
    def headings(self) -> list[str]:
        plain_names = (name.removeprefix("num_") for name in self.columns)
        return [self.axes[0], *(name.replace("_", " ") for name in plain_names)]

    @property
    def texts(self) -> list[list[str]]:
        return self.texts_with("◆ {}")

    def texts_with(self, mark: str) -> list[list[str]]:
        """The texts of all rows, the best ones put into a mark."""
        return [
            [
                name,
                *(mark.format(c.text) if c.shaded else c.text for c in cells.values()),
            ]
            for name, cells in self.rows.items()
        ]

    def sheet(self) -> Sheet:
        return Sheet(self.title, self.headings, self.texts, note=self.legend)

    def document(self) -> dict[str, Any]:
        """The report as one JSON document."""
        rows = {
            name: {column: cell.facts for column, cell in cells.items()}
            for name, cells in self.rows.items()
        }
        told = {"missing": dict(self.missing), "remarks": list(self.remarks)}
        return plain({"title": self.title, "rows": rows, **told})


def markdown(report: Report) -> str:
    """A Markdown table."""
    rule = [":--", *["--:"] * len(report.columns)]
    lines = [report.headings, rule, *report.texts_with("**{}**")]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{report.title}: {report.legend.replace('*', chr(92) + '*')}.\n\n{table}"


def latex(report: Report) -> str:
    """A LaTeX table in the style of booktabs; shading needs `[table]{xcolor}`."""
    lines = [[escaped(text) for text in line] for line in report.texts_with(SHADE)]
    body = "\n".join(" & ".join(line) + r" \\" for line in lines)
    heads = " & ".join(map(escaped, report.headings)) + r" \\"
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{report.title}: {escaped(report.legend)}.}}",
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
    first = next(iter(next(iter(report.rows.values())).values()))
    writer.writerow([*report.axes, *first.facts])
    for name, cells in report.rows.items():
        for column, cell in cells.items():
            writer.writerow([name, column, *map(bare, cell.facts.values())])
    return text.getvalue().rstrip("\n")


def bare(value: Any) -> str:
    """A value as a file of commas has it."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


SHADE = r"\cellcolor{{gray!25}} {}"
SIGNS = {"&": r"\&", "%": r"\%", "_": r"\_", "±": r"$\pm$", "–": "--", "σ": r"$\sigma$"}


def escaped(text: str) -> str:
    """Text as LaTeX takes it."""
    for sign, told in SIGNS.items():
        text = text.replace(sign, told)
    return text


FORMATS: dict[str, Callable[[Report], str]] = {
    "markdown": markdown,
    "latex": latex,
    "csv": comma_separated,
}
