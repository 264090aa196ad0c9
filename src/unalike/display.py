"""Display: what an object shows of itself, in a terminal and in a notebook."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Group


MAX_CLASSES_SHOWN = 12
"""Of up to so many classes each is shown."""


@dataclass(frozen=True)
class SummaryTable:
    """A small table of text with a title, and others that belong below it."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    below: Sequence[SummaryTable] = ()


class Displayable(ABC):
    """Something that rich and notebooks show as a sheet."""

    @abstractmethod
    def summary(self) -> SummaryTable:
        """What is shown."""

    def __rich__(self) -> Group:
        return to_rich(self.summary())

    def _repr_html_(self) -> str:
        return to_html(self.summary())


def to_rich(sheet: SummaryTable) -> Group:
    """A sheet for `rich.print`; text in it is never taken for markup."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in sheet.headings:
        table.add_column(Text(heading))
    for row in sheet.rows:
        table.add_row(*map(Text, row))
    title = [Text(sheet.title, style="bold")] if sheet.title else []
    note = [Text(sheet.note, style="italic")] if sheet.note else []
    return Group(*title, table, *note, *map(to_rich, sheet.below))


def to_html(sheet: SummaryTable) -> str:
    """A sheet as HTML; whatever the text says, it stays text."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in sheet.headings)
    lines = ("".join(f"<td>{escape(text)}</td>" for text in row) for row in sheet.rows)
    body = "".join(f"<tr>{cells}</tr>" for cells in lines)
    title = f"<p><b>{escape(sheet.title)}</b></p>" if sheet.title else ""
    note = f"<p><i>{escape(sheet.note)}</i></p>" if sheet.note else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return title + table + note + "".join(map(to_html, sheet.below))
