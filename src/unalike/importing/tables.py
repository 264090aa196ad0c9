"""`Table`/`Batch`, guessing source/target/id columns, cleaning ids and text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unalike.errors import UserError, did_you_mean
from unalike.importing.ids import IdIndex

# Batch: some rows of a file, which know where they stand in it.


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
    def warning(self) -> str | None:
        """What was guessed about the file and its owner should know."""

    @property
    def header_was_guessed(self) -> bool:
        """Might the names of its columns be a row?"""

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """The rows with the named columns, a batch at a time."""

    def location(self, row: int) -> str:
        """Where the row with this number from 0 stands, for a person to find it."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of a table from number `first` on."""

    table: Table
    first_row: int
    rows: pa.RecordBatch
    bytes_read: float
    """How many bytes of the file it took."""

    def __len__(self) -> int:
        return self.rows.num_rows

    def column(self, name: str) -> pa.Array:
        """One column; what was coded as a dictionary is spelled out."""
        column = self.rows.column(name)
        coded = pa.types.is_dictionary(column.type)
        return column.dictionary_decode() if coded else column

    def row_error(self, row: int, what: str) -> UserError:
        """The error that a row of this batch deserves."""
        return UserError(f"{self.table.location(self.first_row + row)}: {what}")


# Columns: which column of a table is meant, guessed where it is not told.


SOURCE_TARGET_NAMES = {
    "source": "target",
    "src": "dst",
    "from": "to",
    "u": "v",
    "id1": "id2",
    "id_1": "id_2",
    "node1": "node2",
    "node_1": "node_2",
    "source_id": "target_id",
    "src_id": "dst_id",
    "from_id": "to_id",
    "from_node_id": "to_node_id",
    "fromnodeid": "tonodeid",
    "node_from": "node_to",
    "user1": "user2",
    "head": "tail",
    "citing": "cited",
    "start": "end",
}
"""Names that tell the source of an edge, each with the name of its target."""

ID_NAMES = ("id", "node", "node_id", "nodeid", "name", "new_id")


def require_column(table: Table, name: str) -> str:
    """The column of that name, or an error that tells the nearest and all there are."""
    if name in table.columns:
        return name
    hint = did_you_mean(name, table.columns)
    raise UserError(
        f"{table.path} has no column '{name}'.{hint} "
        f"Its columns: {', '.join(table.columns)}."
    )


def edge_columns(
    table: Table, source: str | None, target: str | None
) -> tuple[str, str]:
    """The columns that hold the two ends of an edge."""
    if len(table.columns) < 2:
        raise UserError(
            f"{table.path} has one column only, '{table.columns[0]}'; "
            "an edge needs two."
        )
    if source is None and target is None:
        return _guess(table)
    if source is None or target is None:
        told = require_column(table, source or target or "")
        other = _other_end(table, told)
        return (told, other) if target is None else (other, told)
    return require_column(table, source), require_column(table, target)


def check_header(table: Table, columns: tuple[str, str], index: IdIndex) -> None:
    """Refuse to lose an edge: names of columns that are ids of nodes are a row."""
    for column in columns if table.header_was_guessed else ():
        if index.holds(column):
            raise UserError(
                f"{table.path}: the first line names a column '{column}', which is a "
                "node too; --header no reads that line as a row, yes as names."
            )


def find_id_column(table: Table, told: str | None) -> str:
    """The column that holds the id of a node."""
    if told is not None:
        return require_column(table, told)
    small = {name.lower(): name for name in reversed(table.columns)}
    return next((small[name] for name in ID_NAMES if name in small), table.columns[0])


def _guess(table: Table) -> tuple[str, str]:
    small = {name.lower(): name for name in reversed(table.columns)}
    for source, target in SOURCE_TARGET_NAMES.items():
        if source in small and target in small:
            return small[source], small[target]
    return table.columns[0], table.columns[1]


def _other_end(table: Table, told: str) -> str:
    pairs = SOURCE_TARGET_NAMES | {
        target: source for source, target in SOURCE_TARGET_NAMES.items()
    }
    others = {name.lower(): name for name in table.columns if name != told}
    return others.get(pairs.get(told.lower(), ""), next(iter(others.values())))


# Values: a column of a batch as clean ids, or as clean text.


_WHITESPACE = (9, 32)


def is_text(kind: pa.DataType) -> bool:
    """Does a column of this type hold text?"""
    return (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
    )


def read_ids(batch: Batch, column: str, what: str) -> pa.Array:
    """Ids as whole numbers or trimmed texts, none of them missing."""
    ids = batch.column(column)
    if pa.types.is_floating(ids.type):
        ids = floats_as_integers(batch, column, what)
    elif is_text(ids.type):
        ids = strip_whitespace(ids)
    elif not (pa.types.is_integer(ids.type) or pa.types.is_null(ids.type)):
        raise batch.row_error(
            0, f"the {what} is of the type {ids.type}; ids are numbers or text."
        )
    missing = first_missing(ids)
    if missing >= 0:
        raise batch.row_error(missing, f"the {what} is missing.")
    return ids


def floats_as_integers(batch: Batch, column: str, what: str) -> pa.Array:
    """Numbers with a decimal point as whole numbers; not-a-number becomes missing."""
    numbers = batch.column(column).cast(pa.float64())
    values = numbers.to_numpy(zero_copy_only=False)
    known = ~np.isnan(values)
    broken = known & (values != np.floor(values)) | np.isinf(values)
    if broken.any():
        row = int(broken.argmax())
        raise batch.row_error(row, f"the {what} {values[row]:g} is not a whole number.")
    whole = np.where(known, values, 0).astype(np.int64)
    return pa.array(whole, mask=~known)


def strip_whitespace(values: pa.Array) -> pa.Array:
    """Values as text without blanks around it."""
    text = values.cast(pa.large_string())
    held = np.frombuffer(text.buffers()[2] or b"", np.uint8)
    if any((held == blank).any() for blank in _WHITESPACE):
        return pc.utf8_trim_whitespace(text)
    return text


def text_or_null(values: pa.Array) -> pa.Array:
    """Values of any kind as trimmed text; what is empty is missing."""
    text = strip_whitespace(values)
    return pc.if_else(pc.equal(text, ""), None, text)


def column_values(batch: Batch, column: str) -> pa.Array:
    """Values as they are, and text as `text_or_null` gives it."""
    values = batch.column(column)
    return text_or_null(values) if is_text(values.type) else values


def first_missing(ids: pa.Array) -> int:
    """The first id that is not there, null or empty; -1 if all are."""
    if ids.null_count:
        return pc.index(ids.is_null(), True).as_py()
    return pc.index(ids, "").as_py() if is_text(ids.type) else -1
