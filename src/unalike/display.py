"""Display: what an object shows of itself, in a terminal and in a notebook."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Group

SMALL = 12
"""Of up to so many classes each is shown."""


@dataclass(frozen=True)
class Sheet:
    """A small table of text with a title, and others that belong below it."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    below: Sequence[Sheet] = ()


class Displayed(ABC):
    """Something that rich and notebooks show as a sheet."""

    @abstractmethod
    def sheet(self) -> Sheet:
        """What is shown."""

    def __rich__(self) -> Group:
        return rich_sheet(self.sheet())

    def _repr_html_(self) -> str:
        return html_sheet(self.sheet())


def rich_sheet(sheet: Sheet) -> Group:
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
    return Group(*title, table, *note, *map(rich_sheet, sheet.below))


def html_sheet(sheet: Sheet) -> str:
    """A sheet as HTML; whatever the text says, it stays text."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in sheet.headings)
    lines = ("".join(f"<td>{escape(text)}</td>" for text in row) for row in sheet.rows)
    body = "".join(f"<tr>{cells}</tr>" for cells in lines)
    title = f"<p><b>{escape(sheet.title)}</b></p>" if sheet.title else ""
    note = f"<p><i>{escape(sheet.note)}</i></p>" if sheet.note else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return title + table + note + "".join(map(html_sheet, sheet.below))
