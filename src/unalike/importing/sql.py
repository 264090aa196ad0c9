"""Queries of SQL databases as tables, read in batches."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from unalike.errors import UserError, first_line, require
from unalike.importing.tables import Batch, Table

QUERY_ROWS = 1 << 14
"""Rows of a query that are fetched at a time."""
SQLITE = "sqlite:///"
DUCKDB = "duckdb:///"


@dataclass(frozen=True)
class SqlQuery:
    """The rows of a query, as a table of edges or nodes.

    The database is duckdb:///FILE, sqlite:///FILE, or an open connection of Python's
    DB-API (sqlite3, psycopg), whose values are read as text and typed as those of a CSV
    file are.
    """

    database: Any
    query: str

    def open(self) -> Table:
        """The table, whose columns are known."""
        if isinstance(self.database, str) and self.database.startswith(DUCKDB):
            return open_duckdb(self)
        with self.cursor() as cursor:
            columns = [column[0] for column in cursor.description]
        return QueryTable(
            self.title, columns, self, one_thread=True, is_repeatable=False
        )

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
        with ExitStack() as stack:
            connection = self.database
            if isinstance(connection, str):
                connection = stack.enter_context(closing(open_sqlite(connection)))
            cursor = connection.cursor()
            with self.errors():
                cursor.execute(self.query)
            if cursor.description is None:
                raise UserError(f"{self.title} returns no rows; write a SELECT.")
            yield cursor


@dataclass(frozen=True, eq=False)
class QueryTable(Table):
    """The rows of a query, read in batches."""

    query: SqlQuery

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        row, indices = 0, [self.columns.index(name) for name in columns]
        with self.query.cursor() as cursor:
            while rows := self.query.fetch(cursor):
                texts = ([_text(values[index]) for values in rows] for index in indices)
                arrays = [pa.array(column, pa.large_string()) for column in texts]
                batch = pa.RecordBatch.from_arrays(arrays, list(columns))
                yield Batch(self, row, batch, 0.0)
                row += len(rows)


def open_duckdb(query: SqlQuery) -> Table:
    """The rows of a query of a DuckDB file, which is opened for reading."""
    from unalike.importing.frames import FrameTable

    duckdb = require("duckdb", "warehouse", "A DuckDB file is read by duckdb")
    path = existing_file(query.database.removeprefix(DUCKDB))
    with query.errors():
        relation = duckdb.connect(path, read_only=True).sql(query.query)
    if relation is None:
        raise UserError(f"{query.title} returns no rows; write a SELECT.")
    return FrameTable.of(relation, query.title)


def open_sqlite(url: str) -> sqlite3.Connection:
    """Open an SQLite file for reading by its URL."""
    if not url.startswith(SQLITE):
        raise UserError(
            f"'{url}' is no sqlite:///FILE or duckdb:///FILE; from Python, SqlQuery "
            "takes an open connection to any other database."
        )
    path = existing_file(url.removeprefix(SQLITE))
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)


def existing_file(name: str) -> Path:
    """The path of a file, or an error if there is none."""
    path = Path(name)
    if not path.is_file():
        raise UserError(f"There is no file {path}.")
    return path


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        raise UserError("A query returns binary values; select numbers or text.")
    return None if value is None else str(value)
