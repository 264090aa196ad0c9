"""Summary tables of objects for terminals (rich) and notebooks (HTML)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Group


MAX_CLASSES_SHOWN = 12
"""Summaries list classes only up to this number."""


@dataclass(frozen=True)
class SummaryTable:
    """A table of text with a title, a note and further tables below it."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    below: Sequence[SummaryTable] = ()


class Displayable(ABC):
    """An object that rich and notebooks show as a summary table."""

    @abstractmethod
    def summary(self) -> SummaryTable:
        """The table to show."""

    def __rich__(self) -> Group:
        return to_rich(self.summary())

    def _repr_html_(self) -> str:
        return to_html(self.summary())


def to_rich(summary: SummaryTable) -> Group:
    """A summary table for `rich.print`; its text is not parsed as markup."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in summary.headings:
        table.add_column(Text(heading))
    for row in summary.rows:
        table.add_row(*map(Text, row))
    title = [Text(summary.title, style="bold")] if summary.title else []
    note = [Text(summary.note, style="italic")] if summary.note else []
    return Group(*title, table, *note, *map(to_rich, summary.below))


def to_html(summary: SummaryTable) -> str:
    """A summary table as HTML with escaped text."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in summary.headings)
    lines = (
        "".join(f"<td>{escape(text)}</td>" for text in row) for row in summary.rows
    )
    body = "".join(f"<tr>{cells}</tr>" for cells in lines)
    title = f"<p><b>{escape(summary.title)}</b></p>" if summary.title else ""
    note = f"<p><i>{escape(summary.note)}</i></p>" if summary.note else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return title + table + note + "".join(map(to_html, summary.below))
