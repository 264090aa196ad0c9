"""Parquet files read in batches, and tables spooled to one to be read again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, ClassVar
from weakref import finalize

import pyarrow as pa
import pyarrow.parquet as pq

from unalike.errors import UserError, first_line
from unalike.files import write_errors
from unalike.importing.tables import Batch, Header, Table

BATCH_VALUES = 1 << 21
"""Values per batch; also bounds what is decoded at a time."""
MIN_ROWS = 1 << 12
"""Minimum rows per batch."""
BUFFER_BYTES = 1 << 22


@dataclass(frozen=True)
class ParquetTable:
    """A Parquet file and the names of its columns."""

    path: Path | str
    columns: list[str]
    open: Callable[[], pq.ParquetFile]
    num_bytes: int
    warning: ClassVar[str | None] = None
    header_was_guessed: ClassVar[bool] = False
    one_thread: ClassVar[bool] = False

    @classmethod
    def of(
        cls, path: Path | str, num_bytes: int, open: Callable[[], pq.ParquetFile]
    ) -> ParquetTable:
        """Read the column names of a Parquet file."""
        with parquet_errors(path, num_bytes), open() as file:
            return cls(path, file.schema_arrow.names, open, num_bytes)

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        row = 0
        with parquet_errors(self.path, self.num_bytes), self.open() as file:
            size = self.num_bytes / max(1, file.metadata.num_rows)
            length = max(MIN_ROWS, BATCH_VALUES // len(columns))
            for rows in file.iter_batches(length, columns=list(columns)):
                yield Batch(self, row, rows, size * rows.num_rows)
                row += rows.num_rows

    def location(self, row: int) -> str:
        return f"{self.path}, row {row + 1}"


def open_parquet(path: Path, _header: Header = "guess") -> ParquetTable:
    """Read the column names of a Parquet file."""
    return ParquetTable.of(path, path.stat().st_size, partial(parquet_stream, path))


def parquet_stream(source: Any) -> pq.ParquetFile:
    """Open a Parquet file for reading in batches, column by column.

    A row group may be larger than memory, so that it is not read at a time.
    """
    return pq.ParquetFile(source, pre_buffer=False, buffer_size=BUFFER_BYTES)


@contextmanager
def parquet_errors(path: Path | str, num_bytes: int) -> Iterator[None]:
    """Turn an error of a Parquet file into a `UserError` of one line."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError) as error:
        if num_bytes == 0:
            raise UserError(f"{path} is empty.") from None
        reason = first_line(error)
        raise UserError(f"{path} is damaged or no Parquet file: {reason}.") from None


@dataclass(frozen=True, eq=False)
class SpooledTable:
    """A table that is read once and then from a temporary Parquet file.

    An engine may give the rows of a second pass in another order.
    """

    table: Table
    warning: ClassVar[str | None] = None
    header_was_guessed: ClassVar[bool] = False

    @property
    def one_thread(self) -> bool:
        return self.table.one_thread

    @property
    def path(self) -> Path | str:
        return self.table.path

    @property
    def columns(self) -> list[str]:
        return self.table.columns

    @property
    def num_bytes(self) -> int:
        return self.table.num_bytes

    @cached_property
    def _parquet(self) -> ParquetTable:
        folder = mkdtemp(prefix="unalike.")
        finalize(self, rmtree, folder, ignore_errors=True)
        file, writer = Path(folder, "table.parquet"), None
        with ExitStack() as stack, write_errors(file):
            for batch in self.table.batches(self.columns):
                if writer is None:
                    writer = pq.ParquetWriter(file, batch.rows.schema)
                    stack.callback(writer.close)
                writer.write_batch(batch.rows)
        if writer is None:
            raise UserError(f"{self.path} has no rows.")
        return open_parquet(file)

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        for batch in self._parquet.batches(columns):
            yield replace(batch, table=self)

    def location(self, row: int) -> str:
        return self.table.location(row)


def repeatable(table: Table) -> Table:
    """A table whose every pass has the same rows in the same order."""
    return table if getattr(table, "is_repeatable", True) else SpooledTable(table)
