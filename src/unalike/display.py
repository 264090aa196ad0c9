"""Text tables for terminals and notebooks, and objects that show themselves as one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING

from unalike.formatting import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, Group, RenderableType


MAX_CLASSES_SHOWN = 12
"""Tables by class are shown for up to this number of classes."""
COLUMN_GAP = 2
"""Spaces between columns."""
MIN_WRAP_WIDTH = 24
"""Minimum width of a column that may wrap."""


@dataclass(frozen=True)
class Column:
    """A heading and the cells below it."""

    heading: str
    cells: Sequence[str]
    align_right: bool = False
    wrap: bool = False
    """May a cell take several lines?"""

    @property
    def width(self) -> int:
        """Terminal cells that the column needs."""
        from rich.cells import cell_len

        texts = (self.heading, *self.cells)
        longest = max(map(cell_len, texts))
        if not self.wrap:
            return longest
        longest_word = max(
            (cell_len(word) for text in texts for word in text.split()), default=0
        )
        return min(longest, max(longest_word, MIN_WRAP_WIDTH))


@dataclass(frozen=True)
class TextTable:
    """A table of text with a title, a note, and further tables below it."""

    columns: Sequence[Column]
    title: str = ""
    note: str = ""
    below: Sequence[TextTable] = ()

    @classmethod
    def from_rows(
        cls,
        title: str,
        headings: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        right: Collection[str] = (),
        note: str = "",
        below: Sequence[TextTable] = (),
    ) -> TextTable:
        """A table from its rows; the columns headed by `right` are aligned right."""
        columns = [
            Column(
                heading,
                [row[index] for row in rows],
                align_right=heading in right,
                wrap=heading not in right,
            )
            for index, heading in enumerate(headings)
        ]
        return cls(columns, title, note, below)

    @property
    def headings(self) -> list[str]:
        return [column.heading for column in self.columns]

    @property
    def rows(self) -> list[list[str]]:
        cells = zip(*(column.cells for column in self.columns), strict=True)
        return [list(row) for row in cells]

    @property
    def width(self) -> int:
        widths = (column.width + COLUMN_GAP for column in self.columns)
        return sum(widths) - COLUMN_GAP

    def fit(self, width: int, *, optional: Sequence[str] = ()) -> list[TextTable]:
        """The table, or several tables where it is wider than a terminal.

        Columns headed by `optional` are dropped first, one after the other. Every
        further table repeats the first column.
        """
        table = self
        for heading in optional:
            if table.width > width:
                columns = [each for each in table.columns if each.heading != heading]
                table = replace(table, columns=columns)
        return list(table._split(width))

    def _split(self, width: int) -> Iterator[TextTable]:
        first, *others = self.columns
        widest = max((column.width for column in others), default=0)
        if others and first.width + COLUMN_GAP + widest > width:
            # Names may take several lines; numbers are never cut.
            first = replace(first, wrap=True)
        block = replace(self, columns=[first])
        for column in others:
            wider = replace(block, columns=[*block.columns, column])
            if len(block.columns) > 1 and wider.width > width:
                yield block
                wider = replace(self, columns=[first, column])
            block = wider
        yield block

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """The table for `rich.print`, in several parts where it is too wide."""
        for index, block in enumerate(self.fit(options.max_width)):
            if index:
                yield ""
            yield block._group()

    def _group(self) -> Group:
        """Title, columns and note; text in them is never markup."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(
            box=None,
            pad_edge=False,
            header_style="bold",
            show_header=any(self.headings),
        )
        for column in self.columns:
            table.add_column(
                Text(printable(column.heading)),
                justify="right" if column.align_right else "left",
                no_wrap=not column.wrap,
            )
        for row in self.rows:
            table.add_row(*(Text(printable(cell)) for cell in row))
        title = [Text(printable(self.title), style="bold")] if self.title else []
        note = [Text(printable(self.note), style="italic")] if self.note else []
        return Group(*title, table, *note, *self.below)

    def to_html(self) -> str:
        """The table as HTML; all text is escaped."""
        head = "".join(f"<th>{escape(heading)}</th>" for heading in self.headings)
        rows = (
            "".join(f"<td>{escape(cell)}</td>" for cell in row) for row in self.rows
        )
        body = "".join(f"<tr>{cells}</tr>" for cells in rows)
        title = f"<p><b>{escape(self.title)}</b></p>" if self.title else ""
        note = f"<p><i>{escape(self.note)}</i></p>" if self.note else ""
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return title + table + note + "".join(each.to_html() for each in self.below)


class Displayable(ABC):
    """An object that rich and notebooks show as a table."""

    @abstractmethod
    def summary(self) -> TextTable:
        """The table that is shown."""

    def __rich__(self) -> TextTable:
        return self.summary()

    def _repr_html_(self) -> str:
        return self.summary().to_html()
