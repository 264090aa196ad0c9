"""Batches of table rows, guessing of source, target and id columns, clean values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unalike.errors import UserError, did_you_mean
from unalike.importing.ids import IdIndex
from unalike.parallel import Prefetch

Header = Literal["guess", "yes", "no"]
"""Whether the first line of a text file names its columns."""


@dataclass(frozen=True, eq=False)
class Table(ABC):
    """A file, a frame or a query whose column names are known."""

    path: Path | str
    """The file, or what messages call a table that is none."""
    columns: list[str]
    warning: str | None = field(default=None, kw_only=True)
    """A guess about the file that the user should see."""
    header_was_guessed: bool = field(default=False, kw_only=True)
    """Whether the first line was taken as column names by a guess."""
    one_thread: bool = field(default=False, kw_only=True)
    """Whether the thread that opened the table must read it, as of databases."""
    is_repeatable: bool = field(default=True, kw_only=True)
    """Whether every pass gives the same rows in the same order."""

    @property
    def num_bytes(self) -> int:
        """Its size; 0 if that is not known."""
        return 0

    @abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Read the named columns, a batch at a time."""

    def location(self, row: int) -> str:
        """Return file, row and line of the row with this index, for error messages."""
        return f"{self.path}, row {row + 1}"


@dataclass(frozen=True, eq=False)
class Batch:
    """Consecutive rows of a table from `first_row` on."""

    table: Table
    first_row: int
    rows: pa.RecordBatch
    bytes_read: float
    """Bytes of the file that were read for it."""

    def __len__(self) -> int:
        return self.rows.num_rows

    def column(self, name: str) -> pa.Array:
        """Return one column; dictionary-encoded values are decoded."""
        column = self.rows.column(name)
        encoded = pa.types.is_dictionary(column.type)
        return column.dictionary_decode() if encoded else column

    def row_error(self, row: int, what: str) -> UserError:
        """Return an error that names the file and the row."""
        return UserError(f"{self.table.location(self.first_row + row)}: {what}")

    def refuse(self, invalid: np.ndarray, what: Callable[[int], str]) -> None:
        """Raise an error for the first invalid row, if there is one."""
        if invalid.any():
            row = int(invalid.argmax())
            raise self.row_error(row, what(row))


def read_ahead(table: Table, columns: Sequence[str]) -> Iterable[Batch]:
    """Batches of the named columns, read ahead by a thread where that is safe."""
    return Prefetch(table.batches(columns), depth=0 if table.one_thread else 1)


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
"""Names of source columns, each with the name of its target column."""

ID_NAMES = ("id", "node", "node_id", "nodeid", "name", "new_id")


def require_column(table: Table, name: str) -> str:
    """Return the name of a column, or raise an error that lists the columns."""
    if name in table.columns:
        return name
    hint = did_you_mean(name, table.columns)
    raise UserError(
        f"{table.path} has no column '{name}'.{hint} "
        f"Its columns: {', '.join(table.columns)}."
    )


@dataclass(frozen=True)
class EdgeColumns:
    """The source and target columns of an edge table, and that of weights."""

    source: str
    target: str
    guessed: bool
    weight: str | None = None

    @property
    def names(self) -> tuple[str, str]:
        return self.source, self.target

    @property
    def used(self) -> list[str]:
        return [name for name in (*self.names, self.weight) if name is not None]

    def notes(self, table: Table) -> Iterator[str]:
        """What was guessed, and which columns are not used."""
        if self.guessed and len(table.columns) > 2:
            yield (
                f"{table.path}: the columns '{self.source}' and '{self.target}' are "
                "taken as source and target; --source and --target name others."
            )
        unused = [name for name in table.columns if name not in self.used]
        if unused:
            yield f"{table.path}: not used: {', '.join(unused)}."


def edge_columns(
    table: Table,
    source: str | None,
    target: str | None,
    known: IdIndex | None,
    *,
    weight: str | None = None,
) -> EdgeColumns:
    """Return the source and target columns, guessed where they are not named.

    They are guessed by their names, else by the ids of the node table that are in them
    (`known`), else by position. The column of weights is none of them.
    """
    if weight is not None:
        require_column(table, weight)
    if len(table.columns) < 2:
        raise UserError(
            f"{table.path} has one column only, '{table.columns[0]}'; "
            "an edge needs two."
        )
    given = [name for name in (source, target) if name is not None]
    for name in given:
        require_column(table, name)
    if not given:
        return _guess_edge_columns(table, known, weight)
    other = _other_column(table, given[0])
    return EdgeColumns(
        other if source is None else source,
        other if target is None else target,
        guessed=len(given) < 2,
        weight=weight,
    )


def check_header(table: Table, columns: tuple[str, str], index: IdIndex) -> None:
    """Raise an error if a guessed header contains a node id, as it may be an edge."""
    for column in columns if table.header_was_guessed else ():
        if column in index:
            raise UserError(
                f"{table.path}: the first line names a column '{column}', which is a "
                "node too; --header no reads that line as a row, yes as names."
            )


def find_id_column(table: Table, given: str | None) -> str:
    """Return the column of the node ids, guessed where it is not given."""
    if given is not None:
        return require_column(table, given)
    lower = {name.lower(): name for name in reversed(table.columns)}
    return next((lower[name] for name in ID_NAMES if name in lower), table.columns[0])


def _guess_edge_columns(
    table: Table, known: IdIndex | None, weight: str | None
) -> EdgeColumns:
    lower = {name.lower(): name for name in reversed(table.columns)}
    for source, target in SOURCE_TARGET_NAMES.items():
        if source in lower and target in lower:
            ends = lower[source], lower[target]
            return EdgeColumns(*ends, guessed=False, weight=weight)
    columns = [name for name in table.columns if name != weight]
    if len(columns) < 2:
        raise UserError(f"{table.path} has one column besides the weight '{weight}'.")
    if known is not None and len(columns) > 2:
        first = next(iter(table.batches(columns)), None)
        fractions = {
            name: 0.0 if first is None else _known_fraction(first, name, known)
            for name in columns
        }
        # The sort is stable: columns with equal fractions keep their order.
        best = sorted(columns, key=lambda name: -fractions[name])[:2]
        if fractions[best[1]] > 0:
            columns = [name for name in columns if name in best]
    return EdgeColumns(columns[0], columns[1], guessed=True, weight=weight)


def _known_fraction(batch: Batch, column: str, known: IdIndex) -> float:
    """The fraction of values that are known ids, 7.0 and 7 being the same here."""
    values = column_values(batch, column)
    kind = values.type
    if not (is_text(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return 0.0
    text = pc.replace_substring_regex(values.cast(pa.large_string()), r"\.0$", "")
    text = text.drop_null()
    as_floats = pc.replace_substring_regex(text, "$", ".0")
    return max(map(known.known_fraction, (text, as_floats)))


def _other_column(table: Table, given: str) -> str:
    pairs = SOURCE_TARGET_NAMES | {
        target: source for source, target in SOURCE_TARGET_NAMES.items()
    }
    others = {name.lower(): name for name in table.columns if name != given}
    return others.get(pairs.get(given.lower(), ""), next(iter(others.values())))


_FIRST_VISIBLE, _LAST_ASCII = 33, 127
MANTISSA_BITS = {16: 11, 32: 24, 64: 53}
"""Bits of the integers that floats of each width hold exactly."""


def is_text(arrow_type: pa.DataType) -> bool:
    """Return whether an Arrow type is text."""
    return arrow_type in (pa.string(), pa.large_string(), pa.string_view())


def read_ids(batch: Batch, column: str, what: str) -> pa.Array:
    """Return ids as integers or stripped text; raises an error if one is missing."""
    ids = batch.column(column)
    if pa.types.is_floating(ids.type):
        ids = floats_as_integers(batch, column, what)
    elif is_text(ids.type):
        ids = strip_whitespace(ids)
    elif not (pa.types.is_integer(ids.type) or pa.types.is_null(ids.type)):
        raise batch.row_error(
            0, f"the {what} is of the type {ids.type}; ids are numbers or text."
        )
    missing = -1
    if ids.null_count:
        missing = pc.index(ids.is_null(), True).as_py()
    elif is_text(ids.type):
        missing = pc.index(ids, "").as_py()
    if missing >= 0:
        raise batch.row_error(missing, f"the {what} is missing.")
    return ids


def read_weights(batch: Batch, column: str) -> np.ndarray:
    """Return edge weights as 32-bit floats; they must be finite and above 0."""
    values = column_values(batch, column)
    numbers = _as_numbers(values)
    if numbers is None:
        row = next(
            row for row in range(len(batch)) if _as_numbers(values[row:][:1]) is None
        )
        raise batch.row_error(
            row,
            f"the weight '{values[row].as_py()}' (column '{column}') is no number "
            "such as 3.5.",
        )
    # An overflow is an infinite weight, which is refused.
    with np.errstate(over="ignore"):
        weights = numbers.astype(np.float32)

    def problem(row: int) -> str:
        value = values[row].as_py()
        what = "is missing" if value is None else f"{value} is not above 0 and finite"
        return f"the weight (column '{column}') {what}."

    batch.refuse(~(np.isfinite(weights) & (weights > 0)), problem)
    return weights


def _as_numbers(values: pa.Array) -> np.ndarray | None:
    try:
        return values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def floats_as_integers(batch: Batch, column: str, what: str) -> pa.Array:
    """Convert floats to integers, NaN to null; raises an error for other values.

    Beyond 2^53, or 2^24 for 32 bits, different integers are stored as the same float.
    """
    floats = batch.column(column)
    limit = 2.0 ** MANTISSA_BITS[floats.type.bit_width]
    values = floats.cast(pa.float64()).to_numpy(zero_copy_only=False)
    missing = np.isnan(values)
    batch.refuse(
        ~missing & (values != np.floor(values)) | np.isinf(values),
        lambda row: f"the {what} {values[row]:g} is not an integer.",
    )
    batch.refuse(
        np.abs(values) >= limit,
        lambda row: (
            f"the {what} {values[row]:.0f} is too large for a "
            f"{floats.type}, which rounds it; store integers or text."
        ),
    )
    integers = np.where(missing, 0, values).astype(np.int64)
    return pa.array(integers, mask=missing)


def strip_whitespace(values: pa.Array) -> pa.Array:
    """Convert values to text without whitespace around it."""
    text = values.cast(pa.large_string())
    data = np.frombuffer(text.buffers()[2] or b"", np.uint8)
    # Whitespace that is not ASCII begins with a byte above 127.
    if not len(data) or (data.min() >= _FIRST_VISIBLE and data.max() <= _LAST_ASCII):
        return text
    return pc.utf8_trim_whitespace(text)


def text_or_null(values: pa.Array) -> pa.Array:
    """Convert values to stripped text, and empty text to null."""
    text = strip_whitespace(values)
    return pc.if_else(pc.equal(text, ""), None, text)


def column_values(batch: Batch, column: str) -> pa.Array:
    """Return a column unchanged, or by `text_or_null` if it is text."""
    values = batch.column(column)
    return text_or_null(values) if is_text(values.type) else values
