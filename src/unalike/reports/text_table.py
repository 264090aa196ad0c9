"""Text tables for a terminal, number formats, NaN-safe JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

GAP = 2
"""Blanks between columns."""
MIN_WRAP_WIDTH = 24
"""What prose that may wrap needs at least."""


@dataclass(frozen=True)
class Column:
    """A heading and the cells below it."""

    heading: str
    cells: Sequence[str]
    align_right: bool = False
    """Do the cells stand on the right, as numbers do?"""
    wrap: bool = False
    """May a cell take several lines?"""

    @property
    def width(self) -> int:
        """The room that the column needs."""
        texts = (self.heading, *self.cells)
        longest = max(map(cell_len, texts))
        if not self.wrap:
            return longest
        longest_word = max(cell_len(word) for text in texts for word in text.split())
        return min(longest, max(longest_word, MIN_WRAP_WIDTH))


def fit_to_width(
    columns: Sequence[Column], width: int, *, spare: Sequence[str] = ()
) -> list[Table]:
    """Columns as one table, or as several below each other where one is too wide.

    Before that, the columns headed by `spare` are left out, one after the other.
    """
    kept = list(columns)
    for heading in spare:
        if _width(kept) > width:
            kept = [column for column in kept if column.heading != heading]
    return [_table(block) for block in _split_columns(kept, width)]


def _split_columns(columns: Sequence[Column], width: int) -> Iterator[list[Column]]:
    """Runs of columns that fit, each after the first column of all."""
    first, *others = columns
    block = [first]
    for column in others:
        if len(block) > 1 and _width([*block, column]) > width:
            yield block
            block = [first]
        block.append(column)
    yield block


def _width(columns: Sequence[Column]) -> int:
    return sum(column.width + GAP for column in columns) - GAP


def _table(columns: Sequence[Column]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(
            Text(column.heading),
            justify="right" if column.align_right else "left",
            no_wrap=not column.wrap,
        )
    for cells in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*map(Text, cells))
    return table
