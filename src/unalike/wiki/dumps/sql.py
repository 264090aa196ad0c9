"""Streaming parser of mysqldump `INSERT` rows (numba)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from unalike.data.numba_utils import njit
from unalike.errors import UserError
from unalike.parallel import prefetch
from unalike.wiki.dumps.files import Block, decompressed_blocks

# Scanner: the compiled loops that read `INSERT INTO … VALUES (…),(…);` from bytes.
#
# A loop that meets the end of its bytes in the middle of a row answers MORE, and the row
# is scanned again when more bytes have come; what is no row at all is WRONG.


INCOMPLETE, INVALID = -1, -2
SKIP, NUMBER, TEXT, LENGTH = 0, 1, 2, 3
"""What is kept of a column: nothing, a whole number, a text or how long it is."""

_QUOTE, _BACKSLASH, _UNDERSCORE = ord("'"), ord("\\"), ord("_")
_OPEN, _CLOSE, _COMMA, _SEMICOLON = ord("("), ord(")"), ord(","), ord(";")
_NEWLINE, _BLANK, _MINUS, _ZERO, _NINE = 10, 32, ord("-"), ord("0"), ord("9")
_VALUES, _NULL = np.frombuffer(b"VALUES", np.uint8), np.frombuffer(b"NULL", np.uint8)

_ESCAPES = np.arange(256, dtype=np.uint8)
_ESCAPES[[ord(letter) for letter in "0nrtbZ"]] = [0, 10, 13, 9, 8, 26]
"""What the byte after a backslash stands for."""


@njit()
def skip_whitespace(block: np.ndarray, at: int) -> int:
    """The next byte that is not white space."""
    while at < len(block) and block[at] <= _BLANK:
        at += 1
    return at


@njit()
def read_quoted(
    block: np.ndarray, at: int, text: np.ndarray, length: int
) -> tuple[int, int]:
    """Write a quoted text as it is meant; returns its end and the new length."""
    last = len(block) - 1
    while at < last:
        byte = block[at]
        if byte == _BACKSLASH:
            at += 1
            byte = _ESCAPES[block[at]]
        elif byte == _QUOTE:
            if block[at + 1] != _QUOTE:
                return at + 1, length
            at += 1
        text[length] = byte
        length += 1
        at += 1
    return INCOMPLETE, length


@njit()
def read_unquoted(block: np.ndarray, at: int) -> tuple[int, int, bool]:
    """Read up to the next comma or bracket: the end, and the whole number if it is."""
    negative = block[at] == _MINUS
    first = at + negative
    value, whole = 0, True
    at = first
    while at < len(block):
        byte = block[at]
        if byte in (_COMMA, _CLOSE) or byte <= _BLANK:
            return at, -value if negative else value, whole and at > first
        whole = whole and _ZERO <= byte <= _NINE
        value = value * 10 + (byte - _ZERO)
        at += 1
    return INCOMPLETE, 0, False


@njit()
def skip_charset(block: np.ndarray, at: int) -> int:
    """The quote after the name of a character set, as in `_binary 'text'`."""
    while at < len(block) and block[at] != _QUOTE:
        if block[at] in (_COMMA, _CLOSE):
            return INVALID
        at += 1
    return at if at < len(block) else INCOMPLETE


@njit()
def read_value(
    block: np.ndarray, at: int, kind: int, text: np.ndarray, length: int
) -> tuple[int, int, int]:
    """One value: its end, its number or length in bytes, and the new length of text.

    Where there is no value, the number is -1 and the text is empty.
    """
    if block[at] == _UNDERSCORE:
        at = skip_charset(block, at)
        if at < 0:
            return at, 0, length
    if block[at] == _QUOTE:
        end, after = read_quoted(block, at + 1, text, length)
        if kind == NUMBER:
            end = min(end, INVALID)
        return end, after - length, after if kind == TEXT else length
    end, value, whole = read_unquoted(block, at)
    if block[at] == _NULL[0] and starts_with(block, at, _NULL):
        return end, -1 if kind == NUMBER else 0, length
    wrong = end >= 0 and (kind > NUMBER or (kind == NUMBER and not whole))
    return INVALID if wrong else end, value, length


@njit()
def read_row(
    block: np.ndarray,
    at: int,
    kinds: np.ndarray,
    numbers: np.ndarray,
    text: np.ndarray,
    length: int,
) -> tuple[int, int]:
    """One row, from after its bracket; returns its end and the new length of text."""
    kept = 0
    for column in range(len(kinds)):
        at = skip_whitespace(block, at)
        if at == len(block):
            return INCOMPLETE, length
        kind = kinds[column]
        at, value, length = read_value(block, at, kind, text, length)
        if at < 0:
            return at, length
        if kind in (NUMBER, LENGTH):
            numbers[kept] = value
            kept += 1
        at = skip_whitespace(block, at)
        if at == len(block):
            return INCOMPLETE, length
        if block[at] != (_CLOSE if column == len(kinds) - 1 else _COMMA):
            return INVALID, length
        at += 1
    return at, length


@njit()
def starts_with(block: np.ndarray, at: int, word: np.ndarray) -> bool:
    """Do these bytes stand here?"""
    return np.array_equal(block[at : at + len(word)], word)


@njit()
def skip_line(block: np.ndarray, at: int) -> int:
    """The beginning of the next line."""
    while at < len(block):
        if block[at] == _NEWLINE:
            return at + 1
        at += 1
    return INCOMPLETE


@njit()
def find_insert(block: np.ndarray, at: int, insert: np.ndarray) -> tuple[int, bool]:
    """Go on from the beginning of a line: to the next, or into a statement's rows."""
    if len(block) - at <= len(insert) + len(_VALUES):
        # Too short to be the statement, unless more of it is to come.
        return skip_line(block, at), False
    if not starts_with(block, at, insert):
        return skip_line(block, at), False
    at += len(insert)
    if not starts_with(block, at, _VALUES):
        return INVALID, False
    return at + len(_VALUES), True


@njit()
def scan(
    block: np.ndarray,
    inside: bool,
    insert: np.ndarray,
    kinds: np.ndarray,
    numbers: np.ndarray,
    starts: np.ndarray,
    text: np.ndarray,
) -> tuple[int, int, bool, int]:
    """Read all whole rows; returns the last end, where it stands, and their number.

    The first answer is MORE or WRONG. Row i gets numbers[i] and the bytes of `text`
    from starts[i] to starts[i + 1].
    """
    at, rows, length = 0, 0, 0
    while True:
        if not inside:
            end, inside = find_insert(block, at, insert)
            if end < 0:
                return end, at, False, rows
            at = end
            continue
        at = skip_whitespace(block, at)
        if at == len(block):
            return INCOMPLETE, at, True, rows
        byte = block[at]
        if byte in (_COMMA, _SEMICOLON):
            inside = byte == _COMMA
            at += 1
        elif byte == _OPEN:
            end, length = read_row(block, at + 1, kinds, numbers[rows], text, length)
            if end < 0:
                return end, at, True, rows
            at = end
            rows += 1
            starts[rows] = length
        else:
            return INVALID, at, True, rows


# SqlTable: the rows of one table in a dump, columns found by their names.


MAX_HEADER_BYTES = 1 << 22
"""Bytes in which a dump must tell its columns."""
_CREATE = re.compile(rb"CREATE TABLE `(\w+)` \((.*?)\n\)", re.DOTALL)
_COLUMN = re.compile(rb"^\s*`(\w+)`", re.MULTILINE)


@dataclass(frozen=True, eq=False)
class SqlRows:
    """Some rows: a column for each number asked for, and the texts."""

    numbers: np.ndarray
    text: pa.Array
    read: int
    """How many bytes of the file they took."""

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True)
class SqlTable:
    """A file that mysqldump made of one table."""

    path: Path
    name: str
    columns: list[str]

    @classmethod
    def open(cls, path: Path, name: str) -> SqlTable:
        """Read as far as the statement that tells the columns."""
        head = b""
        for block in decompressed_blocks(path):
            head += block.content
            if (create := _CREATE.search(head)) and create[1].decode() == name:
                found = _COLUMN.findall(create[2])
                return cls(path, name, [column.decode() for column in found])
            if b"\nINSERT INTO" in head or len(head) > MAX_HEADER_BYTES:
                break
        raise UserError(f"{path} does not begin with CREATE TABLE `{name}`.")

    @property
    def megabytes(self) -> float:
        """The size of the file as it is."""
        return self.path.stat().st_size / 1e6

    def rows(
        self, numbers: Sequence[str], *, text: str = "", length: str = ""
    ) -> Iterator[SqlRows]:
        """All rows: whole numbers, at most one text, and the length of another.

        The length comes as one more number. Numbers keep the order of the table.
        """
        kinds = self._kinds(
            dict.fromkeys(numbers, NUMBER)
            | ({text: TEXT} if text else {})
            | ({length: LENGTH} if length else {})
        )
        scanning = RowScanner(self, kinds)
        for block in prefetch(decompressed_blocks(self.path)):
            yield scanning.read(block)
        yield scanning.read(Block(b"\n", 0))
        scanning.finish()

    def _kinds(self, wanted: dict[str, int]) -> np.ndarray:
        for column in wanted:
            if column not in self.columns:
                raise UserError(
                    f"{self.path}: the table {self.name} has no column {column}; "
                    f"it has {', '.join(self.columns)}."
                )
        return np.array([wanted.get(column, SKIP) for column in self.columns])


class RowScanner:
    """How far a table was read: the bytes of a row that is not whole wait here."""

    def __init__(self, table: SqlTable, kinds: np.ndarray) -> None:
        self.table = table
        self.kinds = kinds
        self.num_numbers = int(((kinds == NUMBER) | (kinds == LENGTH)).sum())
        insert = f"INSERT INTO `{table.name}` ".encode()
        self.insert = np.frombuffer(insert, np.uint8)
        self.leftover = b""
        self.inside = False
        self.place = 0
        """Unpacked bytes of the file before the rest."""

    def read(self, block: Block) -> SqlRows:
        """The rows that end in this block."""
        content = np.frombuffer(self.leftover + block.content, np.uint8)
        # A value takes at least a byte, and one more before the next.
        most = len(content) // (2 * len(self.kinds) + 1) + 1
        numbers = np.empty((most, self.num_numbers), np.int64)
        starts = np.zeros(most + 1, np.int64)
        text = np.empty(len(content), np.uint8)
        status, end, self.inside, num_rows = scan(
            content, self.inside, self.insert, self.kinds, numbers, starts, text
        )
        if status == INVALID:
            raise self._wrong(content[end : end + 60].tobytes(), self.place + end)
        self.leftover = content[end:].tobytes()
        self.place += end
        buffers = [None, pa.py_buffer(starts), pa.py_buffer(text)]
        words = pa.Array.from_buffers(pa.large_string(), num_rows, buffers)
        return SqlRows(numbers[:num_rows], words, block.read)

    def finish(self) -> None:
        """Complain of a statement that has no end."""
        if self.inside:
            raise UserError(f"{self.table.path} is damaged: it ends within a row.")

    def _wrong(self, told: bytes, place: int) -> UserError:
        shown = told.decode("utf-8", "replace").split("\n")[0]
        return UserError(
            f"{self.table.path}, unpacked byte {place:,}: this is no row of the "
            f"{len(self.kinds)} columns of {self.table.name}: {shown}"
        )
