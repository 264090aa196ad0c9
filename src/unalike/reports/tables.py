"""Tables of our and published numbers, as Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from io import StringIO
from typing import Any, TypeAlias

from unalike.display import Displayable, TextTable
from unalike.formatting import format_score

LEGEND = "ours (printed); * differs from the printed number"
DAGGER = "†"


MAX_NAMED_CELLS = 40
"""Cells that a note names one by one."""


@dataclass(frozen=True)
class ResultTable(Displayable):
    """Cells by row and column."""

    title: str
    rows: Mapping[str, Mapping[str, TableCell]]
    missing: Mapping[str, str]
    """Why a row, or a cell, has no data."""
    remarks: Sequence[str] = ()
    """Notes about the data of the other cells."""
    legend: str = LEGEND
    axes: tuple[str, str] = ("dataset", "statistic")
    daggers: Sequence[str] = ()
    """Columns whose heading has a dagger, as in the paper; the legend explains it."""

    @property
    def columns(self) -> list[str]:
        return list(next(iter(self.rows.values())))

    @property
    def headings(self) -> list[str]:
        names = [
            name.removeprefix("num_").replace("_", " ")
            + (DAGGER if name in self.daggers else "")
            for name in self.columns
        ]
        return [self.axes[0], *names]

    @property
    def texts(self) -> list[list[str]]:
        return self.formatted("◆ {}")

    def formatted(
        self, mark: str, escape: Callable[[str], str] = str
    ) -> list[list[str]]:
        """The escaped texts of all rows; `mark` is the format of highlighted cells."""
        return [
            [
                escape(name),
                *(
                    mark.format(escape(c.text)) if c.highlighted else escape(c.text)
                    for c in cells.values()
                ),
            ]
            for name, cells in self.rows.items()
        ]

    @property
    def notes(self) -> list[str]:
        """Remarks, and reasons of missing data with their cells, without full stops."""
        cells_by_reason: dict[str, list[str]] = {}
        for name, reason in self.missing.items():
            first_sentence = re.split(r"\. (?=[A-Z])", reason)[0].removesuffix(".")
            cells_by_reason.setdefault(first_sentence, []).append(name)
        return [
            *(remark.removesuffix(".") for remark in self.remarks),
            *(
                f"{self.cell_names(names)}: no data, {reason}"
                for reason, names in cells_by_reason.items()
            ),
        ]

    def cell_names(self, names: Collection[str]) -> str:
        """Names of cells, `row column`, as whole columns or rows, or their number."""
        left = dict.fromkeys(names)
        short: list[str] = []
        lines = {
            column: [f"{row} {column}" for row in self.rows] for column in self.columns
        }
        lines |= {
            row: [f"{row} {name}" for name in cells] for row, cells in self.rows.items()
        }
        for line, cells in lines.items():
            if all(cell in left for cell in cells):
                short.append(line)
                left = {cell: None for cell in left if cell not in cells}
        if len(left) > MAX_NAMED_CELLS:
            left = {f"{len(left)} other cells": None}
        return ", ".join([*short, *left])

    def summary(self) -> TextTable:
        return TextTable.from_rows(
            self.title, self.headings, self.texts, note=self.legend
        )

    def to_json(self) -> dict[str, Any]:
        rows = {
            name: {column: cell.to_dict for column, cell in cells.items()}
            for name, cells in self.rows.items()
        }
        return {
            "title": self.title,
            "rows": rows,
            "missing": dict(self.missing),
            "remarks": list(self.remarks),
        }


def markdown(report: ResultTable) -> str:
    """A Markdown table with its notes as a list below it."""
    rule = [":--", *["--:"] * len(report.columns)]
    heads = [markdown_escape(heading) for heading in report.headings]
    lines = [heads, rule, *report.formatted("**{}**", markdown_escape)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    title = f"{report.title}: {report.legend.replace('*', chr(92) + '*')}."
    notes = "\n".join(f"- {note}." for note in report.notes)
    return "\n\n".join(part for part in (title, table, notes) if part)


def latex(report: ResultTable) -> str:
    """A LaTeX table with booktabs; highlighting needs `[table]{xcolor}`."""
    lines = report.formatted(SHADE, latex_escape)
    body = "\n".join(" & ".join(line) + r" \\" for line in lines)
    heads = " & ".join(map(latex_escape, report.headings)) + r" \\"
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{latex_escape(f'{report.title}: {report.legend}.')}}}",
            rf"\begin{{tabular}}{{l{'r' * len(report.columns)}}}",
            r"\toprule",
            heads,
            r"\midrule",
            body,
            r"\bottomrule",
            r"\end{tabular}",
            *(rf"\par\footnotesize {latex_escape(note)}." for note in report.notes),
            r"\end{table}",
        ]
    )


def csv_text(report: ResultTable) -> str:
    """CSV with one line for each cell, and all digits."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    first = next(iter(next(iter(report.rows.values())).values()))
    writer.writerow([*report.axes, *first.to_dict])
    for name, cells in report.rows.items():
        for column, cell in cells.items():
            values = cell.to_dict.values()
            texts = (str(v).lower() if isinstance(v, bool) else v for v in values)
            writer.writerow([name, column, *texts])
    return text.getvalue().rstrip("\n")


SHADE = r"\cellcolor{{gray!25}} {}"
LATEX_ESCAPES = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%_#${}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
        "–": "--",
        "σ": r"$\sigma$",
        DAGGER: r"$\dagger$",
    }
)


def latex_escape(text: str) -> str:
    """Text with the special characters of LaTeX escaped."""
    return text.translate(LATEX_ESCAPES)


MARKDOWN_ESCAPES = str.maketrans({"|": r"\|", "<": "&lt;", "\n": " "})


def markdown_escape(text: str) -> str:
    """Text of a cell of a Markdown table, without HTML."""
    return text.translate(MARKDOWN_ESCAPES)


FORMATS: dict[str, Callable[[ResultTable], str]] = {
    "markdown": markdown,
    "latex": latex,
    "csv": csv_text,
}


@dataclass(frozen=True)
class TextCell:
    """Words of the paper about a dataset."""

    text: str
    highlighted: bool = False

    @property
    def to_dict(self) -> dict[str, Any]:
        return {"ours": None, "printed": self.text, "deviates": False}


@dataclass(frozen=True)
class StatisticCell:
    """Our statistic, where there is data, and the published one, where there is one."""

    ours: float | int | None
    published: str
    error: float = 0.0
    """The standard error of the difference, where one of the two is sampled."""

    @property
    def digits(self) -> int:
        """Decimals of the published number."""
        return len(self.published.partition(".")[2])

    @property
    def differs(self) -> bool:
        """Do they differ by more than rounding and two standard errors?"""
        if self.ours is None or not self.published:
            return False
        if math.isnan(self.ours):
            return True
        if self.error:
            rounding = 0.5 * 10.0**-self.digits
            difference = abs(self.ours - float(self.published))
            return difference > 2 * self.error + rounding
        return float(f"{self.ours:.{self.digits}f}") != float(self.published)

    @property
    def highlighted(self) -> bool:
        return False  # statistics are not ranked

    @property
    def to_dict(self) -> dict[str, Any]:
        printed = float(self.published) if self.published else None
        return {"ours": self.ours, "printed": printed, "deviates": self.differs}

    @property
    def text(self) -> str:
        """Our number with the published digits, then the published one in brackets."""
        mark = "*" if self.differs else ""
        printed = f" ({self._format(float(self.published))})" if self.published else ""
        return f"{self._format(self.ours)}{mark}{printed}"

    def _format(self, number: float | int | None) -> str:
        if number is None:
            return "no data"
        return f"{number:,.{self.digits}f}"


@dataclass(frozen=True, kw_only=True)
class ScoreCell:
    """Mean and standard deviation over splits, in percent, ours and published.

    The field names are keys of `unalike table --json`.
    """

    mean: float | None = None
    std: float | None = None
    printed_mean: float | None = None
    printed_std: float | None = None
    relative_error: float | None = None
    """Percent lost compared with full-batch training."""
    printed_relative_error: float | None = None
    quoted: str | None = None
    """The source of a published number that the paper took from elsewhere."""
    limit: str | None = None
    """What the paper's code ran out of: memory or time."""
    missing: str | None = None
    """Why there is no result of ours."""
    highlighted: bool = False

    @property
    def value(self) -> tuple[float, float] | None:
        """Mean and std to rank by: ours, or the published ones if there are none."""
        if self.mean is not None:
            return self.mean, self.std or 0.0
        if self.printed_mean is not None:
            return self.printed_mean, self.printed_std or 0.0
        return None

    @property
    def deviations(self) -> float | None:
        """Our mean minus the published one, in published standard deviations."""
        if self.mean is None or self.printed_mean is None or not self.printed_std:
            return None
        return (self.mean - self.printed_mean) / self.printed_std

    @property
    def to_dict(self) -> dict[str, Any]:
        values = asdict(self)
        values["shaded"] = values.pop("highlighted")
        return {**values, "deviations": self.deviations}

    @property
    def text(self) -> str:
        ours = "–" if self.mean is None else format_score(self.mean, self.std)
        ours += format_loss(self.relative_error)
        return f"{ours} ({printed})" if (printed := self._printed()) else ours

    def _printed(self) -> str:
        if self.printed_mean is None:
            return f"out of {self.limit}" if self.limit else ""
        text = format_score(self.printed_mean, self.printed_std)
        text += format_loss(self.printed_relative_error)
        return text if self.deviations is None else f"{text}, {self.deviations:+.1f}σ"


@dataclass(frozen=True, kw_only=True)
class PublishedCell(ScoreCell):
    """A published number with its source, in a table of ours."""

    @property
    def text(self) -> str:
        if self.printed_mean is None:
            return "–"
        score = format_score(self.printed_mean, self.printed_std)
        return f"{score} {self.quoted}"


TableCell: TypeAlias = TextCell | StatisticCell | ScoreCell


def format_loss(relative_error: float | None) -> str:
    """A loss compared with full-batch training, as an addition to a score."""
    return "" if relative_error is None else f", {relative_error:.1f} % lost"


# Highlighting of the best cells of a column.


Value = tuple[float, float] | None
"""Mean and standard deviation."""


def rank(column: Sequence[Value]) -> list[int]:
    """Positions of values from best to worst: highest mean, then smallest std."""
    values = {i: value for i, value in enumerate(column) if value}
    return sorted(values, key=lambda i: (-values[i][0], values[i][1]))


def near_best(column: Sequence[Value]) -> set[int]:
    """Positions of means at most one std of the best below the best mean."""
    ranked = rank(column)
    if not ranked:
        return set()
    mean, std = column[ranked[0]] or (0.0, 0.0)
    return {i for i, value in enumerate(column) if value and value[0] >= mean - std}


def first_ranks(column: Sequence[Value], count: int) -> set[int]:
    """Positions of the best values, with all that equal the last of them."""
    best = {column[i] for i in rank(column)[:count]}
    return {i for i, value in enumerate(column) if value in best}


HIGHLIGHT_RULES: dict[str, Callable[[Sequence[Value]], set[int]]] = {
    "best": partial(first_ranks, count=1),
    "three best": partial(first_ranks, count=3),
    "best up to one standard deviation": near_best,
    "none": lambda column: set(),
}
