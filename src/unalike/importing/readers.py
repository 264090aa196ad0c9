"""Read CSV, TSV, text and Parquet files, folders or globs as streams of batches."""

from __future__ import annotations

import csv
import gzip
import io
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from io import BufferedReader
from itertools import islice
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeAlias

import pyarrow as pa
from pyarrow import csv as arrow_csv

from unalike.errors import UserError
from unalike.importing.parquet import open_parquet, repeatable
from unalike.importing.sql import SqlQuery
from unalike.importing.tables import Batch, Header, Table
from unalike.importing.urls import open_url

CSV_BLOCK_BYTES = 1 << 23
DELIMITERS = {".csv": ",;\t|", ".tsv": "\t", ".txt": "\t,;| "}
"""Delimiters of each suffix; the first one that is in the first line is used."""
MAX_ERROR_LINES = 100
"""Lines of a row that an error may show."""
LINE_ENDS = "\r\n"
COMMENTS = {".txt": ("#", "%")}


@dataclass(frozen=True, eq=False)
class CsvTable(Table):
    """A delimited text file; every value is read as text."""

    path: Path
    delimiter: str
    skip_rows: int
    """Lines before the first row: comments, blank lines, the header."""

    @property
    def num_bytes(self) -> int:
        return self.path.stat().st_size

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        position, row, end_mark = 0, 0, token_hex(16)
        last_row = [end_mark if name == columns[0] else "" for name in self.columns]
        try:
            with pa.OSFile(str(self.path)) as file:
                compressed = _is_gzip(self.path)
                text = pa.CompressedInputStream(file, "gzip") if compressed else file
                stream = pa.PythonFile(
                    _WithLastLine(text, self.delimiter.join(last_row)), "r"
                )
                for rows in _until(end_mark, self._reader(stream, columns)):
                    end = file.tell()
                    yield Batch(self, row, rows, float(end - position))
                    position, row = end, row + rows.num_rows
        except (pa.ArrowInvalid, OSError) as error:
            raise self._diagnose(error) from None

    def _reader(
        self, file: pa.NativeFile, columns: Sequence[str]
    ) -> arrow_csv.CSVStreamingReader:
        return arrow_csv.open_csv(
            file,
            arrow_csv.ReadOptions(
                block_size=CSV_BLOCK_BYTES,
                skip_rows=self.skip_rows,
                column_names=self.columns,
            ),
            arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.large_string()),
                include_columns=list(columns),
            ),
        )

    def location(self, row: int) -> str:
        found = next(islice(self._rows(), row, None), None)
        line = "" if found is None else f" (line {found.line})"
        return f"{self.path}, row {row + 1}{line}"

    def _rows(self) -> Iterator[TextRow]:
        """Yield all rows; quotes may span lines."""
        recorded, end_mark, at_end = list[str](), token_hex(16), False

        def lines() -> Iterator[str]:
            nonlocal at_end
            for line in islice(_lines(self.path), self.skip_rows, None):
                if len(recorded) < MAX_ERROR_LINES:
                    recorded.append(line)
                yield line
            at_end = True
            yield end_mark

        rows = csv.reader(lines(), delimiter=self.delimiter)
        first, limit = self.skip_rows + 1, csv.field_size_limit(CSV_BLOCK_BYTES)
        try:
            for fields in rows:
                if at_end and fields == [end_mark]:
                    return
                if fields:
                    yield TextRow(first, "".join(recorded), len(fields), not at_end)
                recorded.clear()
                first = self.skip_rows + rows.line_num + 1
        except csv.Error:  # a field that is larger than a block
            yield TextRow(first, "".join(recorded), 0, closed=False)
        finally:
            csv.field_size_limit(limit)

    def _diagnose(self, error: Exception) -> UserError:
        """Find the first invalid row of a file that could not be parsed."""
        try:
            for number, row in enumerate(self._rows(), 1):
                problem = row.problem(len(self.columns))
                if problem:
                    location = f"{self.path}, row {number} (line {row.line})"
                    return UserError(f"{location}: {problem}")
        except (OSError, EOFError, zlib.error) as read_error:
            return UserError(f"{self.path} is damaged: {read_error}.")
        return UserError(f"{self.path} cannot be read: {error}.")


@dataclass(frozen=True)
class TextRow:
    """A row of a text file, to find what is wrong with it."""

    line: int
    text: str
    """Its text; bytes that are not UTF-8 are surrogates."""
    num_fields: int
    closed: bool
    """Whether the file does not end inside a quote of this row."""

    def problem(self, num_columns: int) -> str | None:
        raw = self.text.encode("utf-8", "surrogateescape")
        text = raw.decode("utf-8", "backslashreplace")
        shown = f"'{_short(text.strip(LINE_ENDS))}'"
        if text != self.text:
            return f"{shown} is not UTF-8."
        if not self.closed:
            return f"{shown} has a quote that is never closed."
        if self.num_fields != num_columns:
            return (
                f"{shown} has {self.num_fields} columns; the first line has "
                f"{num_columns}."
            )
        return None


class _WithLastLine(io.RawIOBase):
    """A stream with one more line at its end.

    Arrow reads a file that ends inside a quote without an error; then this line is
    part of the quoted text and no row.
    """

    def __init__(self, stream: pa.NativeFile, line: str) -> None:
        self.stream = stream
        self.rest = f"\n{line}\n".encode()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        block = self.stream.read(size)
        missing = size - len(block)
        end, self.rest = self.rest[:missing], self.rest[missing:]
        return block + end if end else block


def _until(mark: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches without the last row, or raise an error if it is not the mark."""
    before = None
    for batch in batches:
        if batch.num_rows:
            if before is not None:
                yield before
            before = batch
    if before is None or before.column(0)[-1].as_py() != mark:
        raise pa.ArrowInvalid("a quote is never closed")
    yield before.slice(0, before.num_rows - 1)


def open_text(path: Path, header: Header) -> CsvTable:
    """Read the delimiter and the columns from the first line of a text file."""
    suffix = path.with_suffix("").suffix if _is_gzip(path) else path.suffix
    line, skipped = _first_line(path, COMMENTS.get(suffix.lower(), ()))
    delimiters = DELIMITERS[suffix.lower()]
    delimiter = next((mark for mark in delimiters if mark in line), delimiters[0])
    if delimiter * 2 in line and not delimiter.strip(" "):
        raise UserError(
            f"{path}, line {skipped + 1}: several blanks between columns; leave one."
        )
    fields = _header_fields(path, line, delimiter, skipped + 1)
    numbers = [str(number) for number in range(1, len(fields) + 1)]
    guess = header == "guess"
    values = line.rstrip(f"{delimiter} ").split(delimiter)
    if header == "no" or (guess and all(map(_is_number, values))):
        note = f"{path} has no header; its columns are called {', '.join(numbers)}."
        warning = note if guess else None
        return CsvTable(path, numbers, delimiter, skipped, warning=warning)
    names = [field or number for field, number in zip(fields, numbers, strict=True)]
    return CsvTable(path, names, delimiter, skipped + 1, header_was_guessed=guess)


def open_maybe_gzip(path: Path) -> gzip.GzipFile | BufferedReader:
    """Open a file for reading, decompressed if it is a .gz."""
    return gzip.open(path) if _is_gzip(path) else path.open("rb")


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text file; bytes that are not UTF-8 become surrogates."""
    file = open_maybe_gzip(path)
    with io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="") as text:
        read = partial(text.readline, CSV_BLOCK_BYTES + 1)
        for number, line in enumerate(iter(read, ""), 1):
            if len(line) > CSV_BLOCK_BYTES:
                raise UserError(
                    f"{path}, line {number}: it is longer than {CSV_BLOCK_BYTES >> 20} "
                    "MB; is this a text file?"
                )
            yield line


def _first_line(path: Path, comments: tuple[str, ...]) -> tuple[str, int]:
    skipped = 0
    try:
        for skipped, line in enumerate(_lines(path)):
            if line.strip() and not line.startswith(comments):
                line.encode("utf-8")
                return line.rstrip(LINE_ENDS), skipped
    except UnicodeEncodeError:
        raise UserError(f"{path}, line {skipped + 1}: the text is not UTF-8.") from None
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path} is damaged: {error}.") from None
    raise UserError(f"{path} is empty.")


def _header_fields(path: Path, line: str, delimiter: str, number: int) -> list[str]:
    mark = token_hex(16)
    try:
        fields, *rest = csv.reader([line, mark], delimiter=delimiter)
    except csv.Error as error:
        raise UserError(f"{path}, line {number}: {error}.") from None
    if rest != [[mark]]:
        raise UserError(
            f"{path}, line {number}: '{_short(line)}' has a quote that is not closed "
            "in this line."
        )
    return [field.strip() for field in fields]


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


TableInput: TypeAlias = Any
"""A path, a folder, a glob, a DataFrame or a query, or a sequence of such."""

FORMATS: dict[str, Callable[[Path, Header], Table]] = {
    **{text + gz: open_text for text in DELIMITERS for gz in ("", ".gz")},
    ".parquet": open_parquet,
    ".pq": open_parquet,
}


@dataclass(frozen=True)
class InputTables:
    """Opened tables of edges and of nodes."""

    edges: list[Table]
    nodes: list[Table]

    @classmethod
    def open(
        cls, edges: TableInput, nodes: TableInput, header: Header = "guess"
    ) -> InputTables:
        return cls(
            open_tables(edges, header, "the table of edges"),
            list(map(repeatable, open_tables(nodes, header, "the table of nodes"))),
        )

    @property
    def notes(self) -> list[str]:
        """Guesses about the files that are printed."""
        return [table.warning for table in (*self.edges, *self.nodes) if table.warning]

    def to_dict(self, edge_rows: list[int], node_rows: list[int]) -> dict[str, Any]:
        """Return the files with their sizes and rows, as graph.json stores them."""
        return {
            "edges": _files(self.edges, edge_rows),
            "nodes": _files(self.nodes, node_rows),
        }


def total_megabytes(tables: Iterable[Table]) -> float:
    """Return the size of all files, which progress bars count."""
    return sum(table.num_bytes for table in tables) / 1e6


def open_tables(
    inputs: TableInput, header: Header = "guess", what: str = "the table"
) -> list[Table]:
    """Open every table; messages call one without a path `what`."""
    if isinstance(inputs, str) or not isinstance(inputs, Sequence):
        inputs = [inputs]
    return [
        with_distinct_columns(table)
        for one in inputs
        for table in _open(one, header, what)
    ]


def _open(source: Any, header: Header, what: str) -> Iterator[Table]:
    """The tables of a path, a URL, a query or a frame."""
    if isinstance(source, SqlQuery):
        yield source.open()
    elif isinstance(source, str) and "://" in source:
        yield from open_url(source)
    elif isinstance(source, str | Path):
        for path in expand_paths(str(source)):
            yield _open_file(path, header)
    else:
        # Narwhals takes longer to import than a small file to read.
        from unalike.importing.frames import FrameTable

        yield FrameTable.of(source, what)


def expand_paths(name: str) -> list[Path]:
    """Return the files of a path, a folder or a glob, sorted."""
    path = Path(name)
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.name[0] not in "._")
        tables = [file for file in files if file.is_file() and _suffix(file)]
        if not tables:
            raise UserError(f"{path} has no table; known are {', '.join(FORMATS)}.")
        return tables
    if path.exists() or not set(name) & set("*?["):
        return [path]
    files = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
    if not files:
        raise UserError(f"No file matches '{name}'.")
    return files


def _files(tables: list[Table], rows: list[int]) -> list[dict[str, Any]]:
    return [
        {"file": str(table.path), "bytes": table.num_bytes, "rows": count}
        for table, count in zip(tables, rows, strict=True)
    ]


def _open_file(path: Path, header: Header) -> Table:
    if not path.exists():
        raise UserError(f"There is no file {path}.")
    if not os.access(path, os.R_OK):
        raise UserError(f"{path} may not be read: permission denied.")
    suffix = _suffix(path)
    if suffix is None:
        raise UserError(
            f"{path} has a suffix of no known format; known are {', '.join(FORMATS)}."
        )
    return FORMATS[suffix](path, header)


def with_distinct_columns(table: Table) -> Table:
    """The table, or an error if a column has no name of its own."""
    columns = table.columns
    if not columns:
        raise UserError(f"{table.path} has no columns.")
    for column, count in Counter(columns).items():
        if count > 1:
            raise UserError(f"{table.path} has {count} columns called '{column}'.")
    return table


def _suffix(path: Path) -> str | None:
    name = path.name.lower()
    return next((suffix for suffix in FORMATS if name.endswith(suffix)), None)
