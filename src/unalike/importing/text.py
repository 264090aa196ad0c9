"""Text tables: CSV, TSV and plain text, packed or not, with or without a header."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BufferedReader
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from unalike.errors import UserError
from unalike.importing.batch import Batch, Header

BLOCK = 1 << 23
DELIMITERS = {".csv": ",;\t|", ".tsv": "\t", ".txt": "\t,;| "}
"""What may stand between columns; the first that is in the first line does."""
LONGEST = 1 << 20
"""Bytes of one row that are kept to find what is wrong with it."""
COMMENTS = {".txt": (b"#", b"%")}


@dataclass(frozen=True)
class TextTable:
    """A text file and how it is laid out; every value is read as text."""

    path: Path
    columns: list[str]
    delimiter: str
    skipped: int
    """Lines before the first row: comments, blank lines, the header."""
    note: str | None
    doubtful: bool

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        before, row = 0, 0
        try:
            with pa.OSFile(str(self.path)) as file:
                packed = _packed(self.path)
                unpacked = pa.CompressedInputStream(file, "gzip") if packed else file
                for rows in self._reader(unpacked, columns):
                    at = file.tell()
                    yield Batch(self, row, rows, float(at - before))
                    before, row = at, row + rows.num_rows
        except (pa.ArrowInvalid, OSError) as error:
            raise self._explain(error) from None

    def _reader(
        self, file: pa.NativeFile, columns: Sequence[str]
    ) -> pa.csv.CSVStreamingReader:
        return pa.csv.open_csv(
            file,
            pa.csv.ReadOptions(
                block_size=BLOCK, skip_rows=self.skipped, column_names=self.columns
            ),
            pa.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            pa.csv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.large_string()),
                include_columns=list(columns),
            ),
        )

    def place(self, row: int) -> str:
        line, _ = next(islice(self._rows(), row, None))
        return f"{self.path}, row {row + 1} (line {line})"

    def _rows(self) -> Iterator[tuple[int, bytes]]:
        """The line each row begins in, and its bytes; a quoted value may have lines."""
        with opened(self.path) as file:
            held, first, inside = b"", 0, False
            for line, piece in enumerate(file, 1):
                if line <= self.skipped or not (inside or piece.strip(b"\r\n")):
                    continue
                first = first if inside else line
                held = held + piece if inside and len(held) < LONGEST else held or piece
                inside ^= piece.count(b'"') % 2 == 1
                if not inside:
                    yield first, held
                    held = b""
            if inside:
                yield first, held

    def _explain(self, error: Exception) -> UserError:
        """What is wrong with a file that could not be read, as near as can be told."""
        try:
            for row, (line, held) in enumerate(self._rows(), 1):
                place = f"{self.path}, row {row} (line {line})"
                text = held.decode("utf-8", "backslashreplace").strip("\r\n")
                if text.encode() != held.strip(b"\r\n"):
                    return UserError(f"{place}: '{_short(text)}' is not UTF-8.")
                if held.count(b'"') % 2:
                    return UserError(
                        f"{place}: '{_short(text)}' has a quote that is never closed."
                    )
                found = len(next(csv.reader([text], delimiter=self.delimiter)))
                if found != len(self.columns):
                    return UserError(
                        f"{place}: '{_short(text)}' has {found} columns; the first "
                        f"line has {len(self.columns)}."
                    )
        except (OSError, EOFError, zlib.error) as damage:
            return UserError(f"{self.path} is damaged: {damage}.")
        return UserError(f"{self.path} cannot be read: {error}.")


def open_text(path: Path, header: Header) -> TextTable:
    """Look at the first line of a text file: its delimiter and its columns."""
    kind = path.with_suffix("").suffix if _packed(path) else path.suffix
    line, skipped = _first_line(path, COMMENTS.get(kind.lower(), ()))
    found = (mark for mark in DELIMITERS[kind.lower()] if mark in line)
    delimiter = next(found, DELIMITERS[kind.lower()][0])
    if delimiter * 2 in line and not delimiter.strip(" "):
        raise UserError(
            f"{path}, line {skipped + 1}: columns stand several blanks apart; "
            "leave one between them."
        )
    fields = [field.strip() for field in next(csv.reader([line], delimiter=delimiter))]
    numbers = [str(place) for place in range(1, len(fields) + 1)]
    if header == "no":
        return TextTable(path, numbers, delimiter, skipped, None, doubtful=False)
    guess = header == "guess"
    if guess and all(map(_is_number, line.rstrip(f"{delimiter} ").split(delimiter))):
        note = f"{path} has no header; its columns are called {', '.join(numbers)}."
        return TextTable(path, numbers, delimiter, skipped, note, doubtful=False)
    names = [field or number for field, number in zip(fields, numbers, strict=True)]
    return TextTable(path, names, delimiter, skipped + 1, None, doubtful=guess)


def opened(path: Path) -> gzip.GzipFile | BufferedReader:
    """The bytes of a file, unpacked."""
    return gzip.open(path) if _packed(path) else path.open("rb")


def _first_line(path: Path, comments: tuple[bytes, ...]) -> tuple[str, int]:
    try:
        with opened(path) as file:
            for skipped, line in enumerate(file):
                if line.strip() and not line.startswith(comments):
                    return line.decode("utf-8-sig").rstrip("\r\n"), skipped
    except UnicodeDecodeError:
        raise UserError(f"{path}, line {skipped + 1}: the text is not UTF-8.") from None
    except (OSError, EOFError, zlib.error) as damage:
        raise UserError(f"{path} is damaged: {damage}.") from None
    raise UserError(f"{path} is empty.")


def _packed(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"
