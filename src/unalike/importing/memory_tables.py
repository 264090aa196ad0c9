"""Tables that are no files: DataFrames, Arrow tables, and queries of SQL databases."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from unalike.errors import UserError, first_line
from unalike.importing.tables import Batch

QUERY_ROWS = 1 << 14
"""Rows of a query that are fetched at a time."""
SQLITE = "sqlite:///"


@dataclass(frozen=True, eq=False)
class ArrowTable:
    """A table in memory: what a DataFrame is converted to."""

    path: str
    """What error messages call it."""
    table: pa.Table
    warning: ClassVar[str | None] = None
    header_was_guessed: ClassVar[bool] = False
    one_thread: ClassVar[bool] = False

    @property
    def columns(self) -> list[str]:
        return list(self.table.column_names)

    @property
    def num_bytes(self) -> int:
        return int(self.table.nbytes)

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        row, size = 0, self.num_bytes / max(1, self.table.num_rows)
        selected = self.table.select(list(columns)).combine_chunks()
        for rows in selected.to_batches(max_chunksize=1 << 20):
            yield Batch(self, row, rows, size * rows.num_rows)
            row += rows.num_rows

    def location(self, row: int) -> str:
        return f"{self.path}, row {row + 1}"


def is_dataframe(value: Any) -> bool:
    """Whether an object is a table that Arrow can read, such as a DataFrame."""
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "__dataframe__")


def arrow_table(value: Any, what: str) -> ArrowTable:
    """A DataFrame of pandas or polars, an Arrow table or a DuckDB relation."""
    try:
        if hasattr(value, "to_arrow"):
            table = value.to_arrow()
        elif type(value).__module__.partition(".")[0] == "pandas":
            table = pa.Table.from_pandas(value, preserve_index=False)
        else:
            table = pa.table(value)
    except Exception as error:  # of Arrow or of the library of the table
        reason = first_line(error)
        raise UserError(f"{what} cannot be read as a table: {reason}.") from None
    names = [str(name) for name in table.column_names]
    return ArrowTable(what, table.rename_columns(names))


@dataclass(frozen=True)
class SqlQuery:
    """The rows of a query, as a table of edges or nodes.

    The database is sqlite:///FILE, or an open connection of Python's DB-API (sqlite3,
    DuckDB, psycopg). The query runs once per pass over the table. Values are read as
    text and typed as those of a CSV file are.
    """

    database: Any
    query: str

    def open(self) -> QueryTable:
        """The table, whose columns are known."""
        with self.cursor() as cursor:
            return QueryTable(self, [column[0] for column in cursor.description])

    @property
    def title(self) -> str:
        """What error messages call it."""
        short = " ".join(self.query.split())
        return f"The query '{short if len(short) <= 60 else short[:60] + '…'}'"

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Name the query in what the database says about it."""
        try:
            yield
        except Exception as error:
            raise UserError(f"{self.title} fails: {first_line(error)}.") from None

    def fetch(self, cursor: Any) -> list[tuple[Any, ...]]:
        """The next rows; none at the end."""
        with self.errors():
            return cursor.fetchmany(QUERY_ROWS)

    @contextmanager
    def cursor(self) -> Iterator[Any]:
        """Run the query; a connection that is opened here is closed afterwards."""
        connection, own = self.database, isinstance(self.database, str)
        if own:
            connection = open_sqlite(self.database)
        try:
            cursor = connection.cursor()
            with self.errors():
                cursor.execute(self.query)
            if cursor.description is None:
                raise UserError(f"{self.title} returns no rows; write a SELECT.")
            yield cursor
        finally:
            if own:
                connection.close()


@dataclass(frozen=True, eq=False)
class QueryTable:
    """The rows of a query, read in batches."""

    query: SqlQuery
    columns: list[str]
    warning: ClassVar[str | None] = None
    header_was_guessed: ClassVar[bool] = False
    one_thread: ClassVar[bool] = True
    num_bytes: ClassVar[int] = 0
    """The size of a result is not known before it is read."""

    @property
    def path(self) -> str:
        return self.query.title

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        row, indices = 0, [self.columns.index(name) for name in columns]
        with self.query.cursor() as cursor:
            while rows := self.query.fetch(cursor):
                arrays = [
                    pa.array(
                        [_text(values[index]) for values in rows], pa.large_string()
                    )
                    for index in indices
                ]
                batch = pa.RecordBatch.from_arrays(arrays, list(columns))
                yield Batch(self, row, batch, 0.0)
                row += len(rows)

    def location(self, row: int) -> str:
        return f"{self.path}, row {row + 1}"


def open_sqlite(url: str) -> sqlite3.Connection:
    """Open an SQLite file for reading by its URL."""
    path = Path(url.removeprefix(SQLITE))
    if not url.startswith(SQLITE):
        raise UserError(
            f"'{url}' is no sqlite:///FILE; from Python, SqlQuery takes an open "
            "connection to any other database."
        )
    if not path.is_file():
        raise UserError(f"There is no file {path}.")
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        raise UserError("A query returns binary values; select numbers or text.")
    return None if value is None else str(value)
