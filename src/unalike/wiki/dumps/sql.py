"""SqlTable: the rows of one table in a dump, columns found by their names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from unalike.errors import UserError
from unalike.importing.threads import ahead
from unalike.wiki.dumps.scanner import LENGTH, NUMBER, SKIP, TEXT, WRONG, scan
from unalike.wiki.dumps.unpacking import Block, unpacked

HEAD = 1 << 22
"""Bytes in which a dump must tell its columns."""
_CREATE = re.compile(rb"CREATE TABLE `(\w+)` \((.*?)\n\)", re.DOTALL)
_COLUMN = re.compile(rb"^\s*`(\w+)`", re.MULTILINE)


@dataclass(frozen=True, eq=False)
class Rows:
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
        for block in unpacked(path):
            head += block.content
            if (create := _CREATE.search(head)) and create[1].decode() == name:
                found = _COLUMN.findall(create[2])
                return cls(path, name, [column.decode() for column in found])
            if b"\nINSERT INTO" in head or len(head) > HEAD:
                break
        raise UserError(f"{path} does not begin with CREATE TABLE `{name}`.")

    @property
    def megabytes(self) -> float:
        """The size of the file as it is."""
        return self.path.stat().st_size / 1e6

    def rows(
        self, numbers: Sequence[str], *, text: str = "", length: str = ""
    ) -> Iterator[Rows]:
        """All rows: whole numbers, at most one text, and the length of another.

        The length comes as one more number. Numbers keep the order of the table.
        """
        kinds = self._kinds(
            dict.fromkeys(numbers, NUMBER)
            | ({text: TEXT} if text else {})
            | ({length: LENGTH} if length else {})
        )
        scanning = Scanning(self, kinds)
        for block in ahead(unpacked(self.path)):
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


class Scanning:
    """How far a table was read: the bytes of a row that is not whole wait here."""

    def __init__(self, table: SqlTable, kinds: np.ndarray) -> None:
        self.table = table
        self.kinds = kinds
        self.num_numbers = int(((kinds == NUMBER) | (kinds == LENGTH)).sum())
        insert = f"INSERT INTO `{table.name}` ".encode()
        self.insert = np.frombuffer(insert, np.uint8)
        self.rest = b""
        self.inside = False
        self.place = 0
        """Unpacked bytes of the file before the rest."""

    def read(self, block: Block) -> Rows:
        """The rows that end in this block."""
        content = np.frombuffer(self.rest + block.content, np.uint8)
        # A value takes at least a byte, and one more before the next.
        most = len(content) // (2 * len(self.kinds) + 1) + 1
        numbers = np.empty((most, self.num_numbers), np.int64)
        starts = np.zeros(most + 1, np.int64)
        text = np.empty(len(content), np.uint8)
        status, end, self.inside, num_rows = scan(
            content, self.inside, self.insert, self.kinds, numbers, starts, text
        )
        if status == WRONG:
            raise self._wrong(content[end : end + 60].tobytes(), self.place + end)
        self.rest = content[end:].tobytes()
        self.place += end
        buffers = [None, pa.py_buffer(starts), pa.py_buffer(text)]
        words = pa.Array.from_buffers(pa.large_string(), num_rows, buffers)
        return Rows(numbers[:num_rows], words, block.read)

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
