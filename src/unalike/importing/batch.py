"""Batch: some rows of a file, which know where they stand in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

import pyarrow as pa

from unalike.errors import UserError

Header = Literal["guess", "yes", "no"]
"""Does the first line of a text file name its columns?"""


@runtime_checkable
class Table(Protocol):
    """A file of rows, opened far enough to know its columns."""

    @property
    def path(self) -> Path: ...

    @property
    def columns(self) -> list[str]: ...

    @property
    def note(self) -> str | None:
        """What was guessed about the file and its owner should know."""

    @property
    def doubtful(self) -> bool:
        """Might the names of its columns be a row?"""

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """The rows with the named columns, a batch at a time."""

    def place(self, row: int) -> str:
        """Where the row with this number from 0 stands, for a person to find it."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of a table from number `first` on."""

    table: Table
    first: int
    rows: pa.RecordBatch
    read: float
    """How many bytes of the file it took."""

    def __len__(self) -> int:
        return self.rows.num_rows

    def column(self, name: str) -> pa.Array:
        """One column; what was coded as a dictionary is spelled out."""
        column = self.rows.column(name)
        coded = pa.types.is_dictionary(column.type)
        return column.dictionary_decode() if coded else column

    def wrong(self, row: int, what: str) -> UserError:
        """The error that a row of this batch deserves."""
        return UserError(f"{self.table.place(self.first + row)}: {what}")
