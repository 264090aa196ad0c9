"""Table of our numbers beside published ones, as Markdown, LaTeX, CSV, JSON."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from io import StringIO
from typing import Any, Protocol, runtime_checkable

from unalike.display import Displayable, SummaryTable
from unalike.formatting import json_safe

# Report: a table of cells, and the formats it can be written in.


LEGEND = "ours (printed); * differs from the printed number"


@runtime_checkable
class TableCell(Protocol):
    """What a cell of a report tells."""

    @property
    def text(self) -> str:
        """The cell in a table."""

    @property
    def highlighted(self) -> bool:
        """Is it one of the best?"""

    @property
    def to_dict(self) -> dict[str, Any]:
        """All of it, by name."""


@dataclass(frozen=True)
class ResultTable(Displayable):
    """Rows of cells by name and column."""

    title: str
    rows: Mapping[str, Mapping[str, TableCell]]
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
        return self.formatted("◆ {}")

    def formatted(self, mark: str) -> list[list[str]]:
        """The texts of all rows, the best ones put into a mark."""
        return [
            [
                name,
                *(
                    mark.format(c.text) if c.highlighted else c.text
                    for c in cells.values()
                ),
            ]
            for name, cells in self.rows.items()
        ]

    def summary(self) -> SummaryTable:
        return SummaryTable(self.title, self.headings, self.texts, note=self.legend)

    def to_json(self) -> dict[str, Any]:
        """The report as one JSON document."""
        rows = {
            name: {column: cell.to_dict for column, cell in cells.items()}
            for name, cells in self.rows.items()
        }
        told = {"missing": dict(self.missing), "remarks": list(self.remarks)}
        return json_safe({"title": self.title, "rows": rows, **told})


def markdown(report: ResultTable) -> str:
    """A Markdown table."""
    rule = [":--", *["--:"] * len(report.columns)]
    lines = [report.headings, rule, *report.formatted("**{}**")]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{report.title}: {report.legend.replace('*', chr(92) + '*')}.\n\n{table}"


def latex(report: ResultTable) -> str:
    """A LaTeX table in the style of booktabs; shading needs `[table]{xcolor}`."""
    lines = [[latex_escape(text) for text in line] for line in report.formatted(SHADE)]
    body = "\n".join(" & ".join(line) + r" \\" for line in lines)
    heads = " & ".join(map(latex_escape, report.headings)) + r" \\"
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{report.title}: {latex_escape(report.legend)}.}}",
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


def csv_text(report: ResultTable) -> str:
    """One line for each cell, with all digits."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    first = next(iter(next(iter(report.rows.values())).values()))
    writer.writerow([*report.axes, *first.to_dict])
    for name, cells in report.rows.items():
        for column, cell in cells.items():
            writer.writerow([name, column, *map(csv_value, cell.to_dict.values())])
    return text.getvalue().rstrip("\n")


def csv_value(value: Any) -> str:
    """A value as a file of commas has it."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


SHADE = r"\cellcolor{{gray!25}} {}"
LATEX_ESCAPES = {
    "&": r"\&",
    "%": r"\%",
    "_": r"\_",
    "±": r"$\pm$",
    "–": "--",
    "σ": r"$\sigma$",
}


def latex_escape(text: str) -> str:
    """Text as LaTeX takes it."""
    for sign, told in LATEX_ESCAPES.items():
        text = text.replace(sign, told)
    return text


FORMATS: dict[str, Callable[[ResultTable], str]] = {
    "markdown": markdown,
    "latex": latex,
    "csv": csv_text,
}

# Cell: our number beside the printed one.


@dataclass(frozen=True)
class StatisticCell:
    """Ours, where there is data, and what the paper prints, where it does."""

    ours: float | int | None
    published: str
    error: float = 0.0
    """The standard error of the difference, where one of the two is sampled."""

    @property
    def digits(self) -> int:
        """Decimals of the printed number."""
        return len(self.published.partition(".")[2])

    @property
    def differs(self) -> bool:
        """Do the two differ by more than the last printed digit and chance explain?"""
        if self.ours is None or not self.published:
            return False
        if math.isnan(self.ours):
            return True
        if self.error:
            half = 0.5 * 10.0**-self.digits
            return abs(self.ours - float(self.published)) > 2 * self.error + half
        return float(f"{self.ours:.{self.digits}f}") != float(self.published)

    @property
    def highlighted(self) -> bool:
        """Statistics have no best."""
        return False

    @property
    def to_dict(self) -> dict[str, Any]:
        """All of it, by name."""
        printed = float(self.published) if self.published else None
        return {"ours": self.ours, "printed": printed, "deviates": self.differs}

    @property
    def text(self) -> str:
        """Ours with as many digits as printed, then the printed number in brackets."""
        mark = "*" if self.differs else ""
        printed = f" ({self._plain(float(self.published))})" if self.published else ""
        return f"{self._plain(self.ours)}{mark}{printed}"

    def _plain(self, number: float | int | None) -> str:
        if number is None:
            return "no data"
        return f"{number:,.{self.digits}f}"


# Score: what a method reached beside what the paper prints.


@dataclass(frozen=True, kw_only=True)
class ScoreCell:
    """Means and standard deviations over splits, in percent."""

    mean: float | None = None
    std: float | None = None
    printed_mean: float | None = None
    printed_std: float | None = None
    relative_error: float | None = None
    """Percent lost against the full batch."""
    printed_relative_error: float | None = None
    quoted: str | None = None
    """Whose number is printed, where it is not the paper's own."""
    limit: str | None = None
    """What the paper's program ran out of: memory or time."""
    missing: str | None = None
    """Why there is nothing of ours."""
    highlighted: bool = False

    @property
    def value(self) -> tuple[float, float] | None:
        """What it is ranked by: ours, or the printed where there is nothing of ours."""
        if self.mean is not None:
            return self.mean, self.std or 0.0
        if self.printed_mean is not None:
            return self.printed_mean, self.printed_std or 0.0
        return None

    @property
    def deviations(self) -> float | None:
        """How far ours is above the printed mean, in printed standard deviations."""
        if self.mean is None or self.printed_mean is None or not self.printed_std:
            return None
        return (self.mean - self.printed_mean) / self.printed_std

    @property
    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "deviations": self.deviations}

    @property
    def text(self) -> str:
        ours = "–" if self.mean is None else format_score_std(self.mean, self.std)
        return f"{ours} ({printed})" if (printed := self._printed()) else ours

    def _printed(self) -> str:
        if self.printed_mean is None:
            return f"out of {self.limit}" if self.limit else ""
        told = format_score_std(self.printed_mean, self.printed_std)
        return told if self.deviations is None else f"{told}, {self.deviations:+.1f}σ"


def format_score_std(mean: float, std: float | None) -> str:
    """A mean with its standard deviation, as the paper prints them."""
    return f"{mean:.2f}" if std is None else f"{mean:.2f} ± {std:.2f}"


# Shading: which cells of a column the paper's tables mark as the best.


Value = tuple[float, float] | None
"""Mean and standard deviation."""


def top_k(column: Sequence[Value], count: int) -> set[int]:
    """The places of the highest means."""
    there = [place for place, value in enumerate(column) if value]
    ranked = sorted(there, key=lambda place: column[place] or (), reverse=True)
    return set(ranked[:count])


def near_best(column: Sequence[Value]) -> set[int]:
    """The best mean, and those less than its standard deviation below it."""
    values = [value for value in column if value]
    if not values:
        return set()
    mean, std = max(values, key=lambda value: (value[0], -value[1]))
    places = enumerate(column)
    return {place for place, value in places if value and value[0] >= mean - std}


HIGHLIGHT_RULES: dict[str, Callable[[Sequence[Value]], set[int]]] = {
    "best": lambda column: top_k(column, 1),
    "three best": lambda column: top_k(column, 3),
    "best up to one standard deviation": near_best,
    "none": lambda column: set(),
}
