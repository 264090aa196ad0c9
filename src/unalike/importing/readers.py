"""CSV/TSV/text (pyarrow.csv) and Parquet as streams of batches; paths, folders, globs."""

from __future__ import annotations

import csv
import gzip
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from unalike.errors import UserError
from unalike.importing.tables import Batch, Header, Table

# Text tables: CSV, TSV and plain text, packed or not, with or without a header.


CSV_BLOCK_BYTES = 1 << 23
DELIMITERS = {".csv": ",;\t|", ".tsv": "\t", ".txt": "\t,;| "}
"""What may stand between columns; the first that is in the first line does."""
MAX_ROW_BYTES = 1 << 20
"""Bytes of one row that are kept to find what is wrong with it."""
COMMENTS = {".txt": (b"#", b"%")}


@dataclass(frozen=True)
class CsvTable:
    """A text file and how it is laid out; every value is read as text."""

    path: Path
    columns: list[str]
    delimiter: str
    skip_rows: int
    """Lines before the first row: comments, blank lines, the header."""
    warning: str | None
    header_was_guessed: bool

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        before, row = 0, 0
        try:
            with pa.OSFile(str(self.path)) as file:
                packed = _is_gzip(self.path)
                unpacked = pa.CompressedInputStream(file, "gzip") if packed else file
                for rows in self._reader(unpacked, columns):
                    at = file.tell()
                    yield Batch(self, row, rows, float(at - before))
                    before, row = at, row + rows.num_rows
        except (pa.ArrowInvalid, OSError) as error:
            raise self._diagnose(error) from None

    def _reader(
        self, file: pa.NativeFile, columns: Sequence[str]
    ) -> pa.csv.CSVStreamingReader:
        return pa.csv.open_csv(
            file,
            pa.csv.ReadOptions(
                block_size=CSV_BLOCK_BYTES,
                skip_rows=self.skip_rows,
                column_names=self.columns,
            ),
            pa.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            pa.csv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.large_string()),
                include_columns=list(columns),
            ),
        )

    def location(self, row: int) -> str:
        line, _ = next(islice(self._rows(), row, None))
        return f"{self.path}, row {row + 1} (line {line})"

    def _rows(self) -> Iterator[tuple[int, bytes]]:
        """The line each row begins in, and its bytes; a quoted value may have lines."""
        with open_maybe_gzip(self.path) as file:
            held, first, inside = b"", 0, False
            for line, piece in enumerate(file, 1):
                if line <= self.skip_rows or not (inside or piece.strip(b"\r\n")):
                    continue
                first = first if inside else line
                held = (
                    held + piece
                    if inside and len(held) < MAX_ROW_BYTES
                    else held or piece
                )
                inside ^= piece.count(b'"') % 2 == 1
                if not inside:
                    yield first, held
                    held = b""
            if inside:
                yield first, held

    def _diagnose(self, error: Exception) -> UserError:
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


def open_text(path: Path, header: Header) -> CsvTable:
    """Look at the first line of a text file: its delimiter and its columns."""
    kind = path.with_suffix("").suffix if _is_gzip(path) else path.suffix
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
        return CsvTable(
            path, numbers, delimiter, skipped, None, header_was_guessed=False
        )
    guess = header == "guess"
    if guess and all(map(_is_number, line.rstrip(f"{delimiter} ").split(delimiter))):
        note = f"{path} has no header; its columns are called {', '.join(numbers)}."
        return CsvTable(
            path, numbers, delimiter, skipped, note, header_was_guessed=False
        )
    names = [field or number for field, number in zip(fields, numbers, strict=True)]
    return CsvTable(path, names, delimiter, skipped + 1, None, header_was_guessed=guess)


def open_maybe_gzip(path: Path) -> gzip.GzipFile | BufferedReader:
    """The bytes of a file, unpacked."""
    return gzip.open(path) if _is_gzip(path) else path.open("rb")


def _first_line(path: Path, comments: tuple[bytes, ...]) -> tuple[str, int]:
    try:
        with open_maybe_gzip(path) as file:
            for skipped, line in enumerate(file):
                if line.strip() and not line.startswith(comments):
                    return line.decode("utf-8-sig").rstrip("\r\n"), skipped
    except UnicodeDecodeError:
        raise UserError(f"{path}, line {skipped + 1}: the text is not UTF-8.") from None
    except (OSError, EOFError, zlib.error) as damage:
        raise UserError(f"{path} is damaged: {damage}.") from None
    raise UserError(f"{path} is empty.")


def _is_gzip(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"


# Parquet tables: typed columns, read a stretch of rows at a time.


PARQUET_BATCH_VALUES = 1 << 21
"""Values in a batch; also bounds what is decoded at once."""
PARQUET_MIN_ROWS = 1 << 12
"""Rows in a batch at least."""
PARQUET_BUFFER_BYTES = 1 << 22


@dataclass(frozen=True)
class ParquetTable:
    """A Parquet file and the names of its columns."""

    path: Path
    columns: list[str]
    warning: ClassVar[str | None] = None
    header_was_guessed: ClassVar[bool] = False

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        row = 0
        try:
            with _opened(self.path) as file:
                size = self.path.stat().st_size / max(1, file.metadata.num_rows)
                length = max(PARQUET_MIN_ROWS, PARQUET_BATCH_VALUES // len(columns))
                for rows in file.iter_batches(length, columns=list(columns)):
                    yield Batch(self, row, rows, size * rows.num_rows)
                    row += rows.num_rows
        except (pa.ArrowException, OSError) as error:
            raise _read_error(self.path, error) from None

    def location(self, row: int) -> str:
        return f"{self.path}, row {row + 1}"


def open_parquet(path: Path, _header: Header) -> ParquetTable:
    """Read the schema of a Parquet file."""
    try:
        with _opened(path) as file:
            return ParquetTable(path, file.schema_arrow.names)
    except (pa.ArrowException, OSError) as error:
        raise _read_error(path, error) from None


def _opened(path: Path) -> pq.ParquetFile:
    # Buffered column by column: a row group may be larger than memory.
    return pq.ParquetFile(path, pre_buffer=False, buffer_size=PARQUET_BUFFER_BYTES)


def _read_error(path: Path, error: Exception) -> UserError:
    if path.stat().st_size == 0:
        return UserError(f"{path} is empty.")
    return UserError(f"{path} is damaged or no Parquet file: {error}")


# Tables: the files a user names, by path, folder or pattern, opened in order.


FORMATS: dict[str, Callable[[Path, Header], Table]] = {
    ".csv": open_text,
    ".csv.gz": open_text,
    ".tsv": open_text,
    ".tsv.gz": open_text,
    ".txt": open_text,
    ".txt.gz": open_text,
    ".parquet": open_parquet,
    ".pq": open_parquet,
}


@dataclass(frozen=True)
class InputTables:
    """The opened files of edges and of nodes."""

    edges: list[Table]
    nodes: list[Table]

    @classmethod
    def open(
        cls,
        edges: Iterable[str | Path],
        nodes: Iterable[str | Path],
        header: Header = "guess",
    ) -> InputTables:
        return cls(open_tables(edges, header), open_tables(nodes, header))

    @property
    def notes(self) -> list[str]:
        """What was guessed about the files."""
        return [table.warning for table in (*self.edges, *self.nodes) if table.warning]

    def about(self, edge_rows: list[int], node_rows: list[int]) -> dict[str, Any]:
        """The files with their sizes, for the record."""
        return {
            "edges": _files(self.edges, edge_rows),
            "nodes": _files(self.nodes, node_rows),
        }


def total_megabytes(tables: Iterable[Table]) -> float:
    """The size of files, the measure of progress through them."""
    return sum(table.path.stat().st_size for table in tables) / 1e6


def open_tables(given: Iterable[str | Path], header: Header = "guess") -> list[Table]:
    """Every file that is meant, opened; a folder stands for the tables in it."""
    return [_open(path, header) for name in given for path in expand_paths(str(name))]


def expand_paths(name: str) -> list[Path]:
    """The files that a path, a folder or a pattern stands for, sorted."""
    path = Path(name)
    if path.is_dir():
        found = [file for file in path.iterdir() if _is_table(file)]
        if not found:
            raise UserError(f"{path} holds no table; known are {', '.join(FORMATS)}.")
        return sorted(found)
    if path.exists() or not set(name) & set("*?["):
        return [path]
    found = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
    if not found:
        raise UserError(f"No file matches '{name}'.")
    return found


def _files(tables: list[Table], rows: list[int]) -> list[dict[str, Any]]:
    return [
        {"file": str(table.path), "bytes": table.path.stat().st_size, "rows": count}
        for table, count in zip(tables, rows, strict=True)
    ]


def _open(path: Path, header: Header) -> Table:
    if not path.exists():
        raise UserError(f"There is no file {path}.")
    if not os.access(path, os.R_OK):
        raise UserError(f"{path} may not be read: permission denied.")
    kind = _suffix(path)
    if kind is None:
        raise UserError(
            f"{path} has no ending that tells its format; known are "
            f"{', '.join(FORMATS)}."
        )
    table = FORMATS[kind](path, header)
    for column, count in Counter(table.columns).items():
        if count > 1:
            raise UserError(f"{path} has {count} columns called '{column}'.")
    return table


def _suffix(path: Path) -> str | None:
    return next((end for end in FORMATS if path.name.lower().endswith(end)), None)


def _is_table(path: Path) -> bool:
    return path.is_file() and path.name[0] not in "._" and _suffix(path) is not None
