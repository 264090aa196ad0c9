"""Streaming parser of the rows in a mysqldump file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple, no_type_check

import numpy as np
import pyarrow as pa

from unalike.data.numba_utils import njit
from unalike.data.store import string_array
from unalike.errors import UserError
from unalike.parallel import prefetch
from unalike.wiki.dumps.files import Block, decompressed_blocks

INCOMPLETE, INVALID = -1, -2
SKIP, NUMBER, TEXT, LENGTH = 0, 1, 2, 3
"""What is read of a column: nothing, an integer, a text or its length."""

MAX_HEADER_BYTES = 1 << 22
"""Bytes within which CREATE TABLE must end."""
MAX_ROW_BYTES = 1 << 25
"""Maximum bytes of a row, and of a line that is no INSERT."""
_CREATE = re.compile(rb"CREATE TABLE `(\w+)` \(")
_COLUMN = re.compile(rb"^\s*`(\w+)`", re.MULTILINE)


class SqlRows(NamedTuple):
    """A batch of rows: one column for each requested number, and one of text."""

    numbers: np.ndarray
    text: pa.Array
    bytes_read: int
    """Bytes of the file that were read for them."""


@dataclass(frozen=True)
class SqlTable:
    """A mysqldump file of one table."""

    path: Path
    name: str
    columns: list[str]

    @classmethod
    def open(cls, path: Path, name: str) -> SqlTable:
        """Read the column names from CREATE TABLE."""
        head = b""
        for block in decompressed_blocks(path):
            head += block.content
            create = _CREATE.search(head)
            end = head.find(b"\n)", create.end()) if create else -1
            if create and end >= 0 and create[1].decode() == name:
                columns = _COLUMN.findall(head, create.end(), end)
                return cls(path, name, [column.decode() for column in columns])
            if b"\nINSERT INTO" in head or len(head) > MAX_HEADER_BYTES:
                break
        raise UserError(f"{path} does not begin with CREATE TABLE `{name}`.")

    @property
    def megabytes(self) -> float:
        """Size of the compressed file."""
        return self.path.stat().st_size / 1e6

    def rows(
        self, numbers: Sequence[str], *, text: str = "", length: str = ""
    ) -> Iterator[SqlRows]:
        """Read integer columns, at most one text, and the length of another text.

        The length is one more number. Numbers are in the order of the table.
        """
        wanted = dict.fromkeys(numbers, NUMBER) | {text: TEXT, length: LENGTH}
        for column in wanted.keys() - {""}:
            if column not in self.columns:
                raise UserError(
                    f"{self.path}: the table {self.name} has no column {column}; "
                    f"it has {', '.join(self.columns)}."
                )
        kinds = np.array([wanted.get(column, SKIP) for column in self.columns])
        num_numbers = int(np.isin(kinds, (NUMBER, LENGTH)).sum())
        insert = np.frombuffer(f"INSERT INTO `{self.name}` ".encode(), np.uint8)
        leftover, inside, position = b"", False, 0
        for block in chain(prefetch(decompressed_blocks(self.path)), [Block(b"\n", 0)]):
            content = np.frombuffer(leftover + block.content, np.uint8)
            # A value has at least one byte, and one more follows it.
            max_rows = len(content) // (2 * len(kinds) + 1) + 1
            values = np.empty((max_rows, num_numbers), np.int64)
            offsets = np.zeros(max_rows + 1, np.int64)
            data = np.empty(len(content), np.uint8)
            status, end, inside, num_rows = scan(
                content, inside, insert, kinds, values, offsets, data
            )
            leftover = content[end:].tobytes()
            position += end
            self._check(status, leftover, position)
            texts = string_array(offsets[: num_rows + 1], data)
            yield SqlRows(values[:num_rows], texts, block.bytes_read)
        if inside:
            raise UserError(f"{self.path} is damaged: it ends within a row.")

    def _check(self, status: int, leftover: bytes, position: int) -> None:
        """Raise if the bytes from a position on are no row, or too many for one."""
        if status == INVALID:
            line = leftover[:60].decode("utf-8", "replace").split("\n")[0]
            raise UserError(
                f"{self.path}, decompressed byte {position:,}: this is no "
                f"row of the {len(self.columns)} columns of {self.name}: {line}"
            )
        if len(leftover) > MAX_ROW_BYTES:
            raise UserError(
                f"{self.path} is damaged: decompressed byte {position:,} "
                f"begins a row or line of more than {MAX_ROW_BYTES:,} bytes."
            )


# Compiled loops that parse `INSERT INTO … VALUES (…),(…);` from bytes.
#
# A loop that reaches the end of its bytes within a row returns INCOMPLETE, and the row
# is parsed again when more bytes are read; bytes that are no row are INVALID.

_QUOTE, _BACKSLASH, _UNDERSCORE = ord("'"), ord("\\"), ord("_")
_OPEN, _CLOSE, _COMMA, _SEMICOLON = ord("("), ord(")"), ord(","), ord(";")
_NEWLINE, _BLANK, _MINUS, _ZERO, _NINE = 10, 32, ord("-"), ord("0"), ord("9")
_VALUES, _NULL = np.frombuffer(b"VALUES", np.uint8), np.frombuffer(b"NULL", np.uint8)

_ESCAPES = np.arange(256, dtype=np.uint8)
_ESCAPES[[ord(letter) for letter in "0nrtbZ"]] = [0, 10, 13, 9, 8, 26]
"""Value of the byte after a backslash."""


@njit()
@no_type_check
def skip_whitespace(block, pos):
    """Return the position of the next byte that is not whitespace."""
    while pos < len(block) and block[pos] <= _BLANK:
        pos += 1
    return pos


@njit()
@no_type_check
def read_quoted(block, pos, text, length):
    """Unescape a quoted string; returns its end and the new length of text."""
    last = len(block) - 1
    while pos < last:
        byte = block[pos]
        if byte == _BACKSLASH:
            pos += 1
            byte = _ESCAPES[block[pos]]
        elif byte == _QUOTE:
            if block[pos + 1] != _QUOTE:
                return pos + 1, length
            pos += 1
        text[length] = byte
        length += 1
        pos += 1
    return INCOMPLETE, length


@njit()
@no_type_check
def read_unquoted(block, pos):
    """Read up to a comma or bracket; returns end, integer, and if it is an integer."""
    negative = block[pos] == _MINUS
    first = pos + negative
    value, is_integer = 0, True
    pos = first
    while pos < len(block):
        byte = block[pos]
        if byte in (_COMMA, _CLOSE) or byte <= _BLANK:
            return pos, -value if negative else value, is_integer and pos > first
        is_integer = is_integer and _ZERO <= byte <= _NINE
        value = value * 10 + (byte - _ZERO)
        pos += 1
    return INCOMPLETE, 0, False


@njit()
@no_type_check
def skip_charset(block, pos):
    """Return the quote after a character set, as in `_binary 'text'`."""
    while pos < len(block) and block[pos] != _QUOTE:
        if block[pos] in (_COMMA, _CLOSE):
            return INVALID
        pos += 1
    return pos if pos < len(block) else INCOMPLETE


@njit()
@no_type_check
def read_value(block, pos, kind, text, length):
    """Read a value; returns its end, number (-1: NULL) or length, and text length."""
    if block[pos] == _UNDERSCORE:
        pos = skip_charset(block, pos)
        if pos < 0:
            return pos, 0, length
    if block[pos] == _QUOTE:
        end, after = read_quoted(block, pos + 1, text, length)
        if kind == NUMBER:
            end = min(end, INVALID)
        return end, after - length, after if kind == TEXT else length
    end, value, is_integer = read_unquoted(block, pos)
    if block[pos] == _NULL[0] and starts_with(block, pos, _NULL):
        return end, -1 if kind == NUMBER else 0, length
    wrong = kind > NUMBER or (kind == NUMBER and not is_integer) or end == pos
    return INVALID if end >= 0 and wrong else end, value, length


@njit()
@no_type_check
def read_row(block, pos, kinds, numbers, text, length):
    """Read a row after its bracket; returns its end and the new length of text."""
    count = 0
    for column in range(len(kinds)):
        pos = skip_whitespace(block, pos)
        if pos == len(block):
            return INCOMPLETE, length
        kind = kinds[column]
        pos, value, length = read_value(block, pos, kind, text, length)
        if pos < 0:
            return pos, length
        if kind in (NUMBER, LENGTH):
            numbers[count] = value
            count += 1
        pos = skip_whitespace(block, pos)
        if pos == len(block):
            return INCOMPLETE, length
        if block[pos] != (_CLOSE if column == len(kinds) - 1 else _COMMA):
            return INVALID, length
        pos += 1
    return pos, length


@njit()
@no_type_check
def starts_with(block, pos, word):
    """Return whether the block has these bytes at a position."""
    return np.array_equal(block[pos : pos + len(word)], word)


@njit()
@no_type_check
def skip_line(block, pos):
    """Return the start of the next line."""
    while pos < len(block):
        if block[pos] == _NEWLINE:
            return pos + 1
        pos += 1
    return INCOMPLETE


@njit()
@no_type_check
def find_insert(block, pos, insert):
    """Skip a line, or enter the rows of an INSERT; returns position and if inside."""
    if len(block) - pos <= len(insert) + len(_VALUES):
        # Too short for the statement; more of it may be in the next block.
        return skip_line(block, pos), False
    if not starts_with(block, pos, insert):
        return skip_line(block, pos), False
    pos += len(insert)
    if not starts_with(block, pos, _VALUES):
        return INVALID, False
    return pos + len(_VALUES), True


@njit()
@no_type_check
def scan(block, inside, insert, kinds, numbers, offsets, text):
    """Read all complete rows; returns status, position, if inside rows, and count.

    The status is INCOMPLETE or INVALID. Row i has numbers[i] and the bytes of `text`
    from offsets[i] to offsets[i + 1].
    """
    pos, rows, length = 0, 0, 0
    while True:
        if not inside:
            end, inside = find_insert(block, pos, insert)
            if end < 0:
                return end, pos, False, rows
            pos = end
            continue
        pos = skip_whitespace(block, pos)
        if pos == len(block):
            return INCOMPLETE, pos, True, rows
        byte = block[pos]
        if byte in (_COMMA, _SEMICOLON):
            inside = byte == _COMMA
            pos += 1
        elif byte == _OPEN and rows < len(numbers):
            end, length = read_row(block, pos + 1, kinds, numbers[rows], text, length)
            if end < 0:
                return end, pos, True, rows
            pos = end
            rows += 1
            offsets[rows] = length
        else:
            return INVALID, pos, True, rows
