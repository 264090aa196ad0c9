"""Parquet files read in batches, and tables spooled to one to be read again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
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


@dataclass(frozen=True, eq=False)
class ParquetTable(Table):
    """A Parquet file, which may be remote."""

    open: Callable[[], Any]
    """Gives the path of the file, or an open file."""
    size: int

    @classmethod
    def of(cls, path: Path | str, size: int, open: Callable[[], Any]) -> ParquetTable:
        if size == 0:
            raise UserError(f"{path} is empty.")
        with parquet_errors(path), parquet_stream(open()) as file:
            return cls(path, file.schema_arrow.names, open, size)

    @property
    def num_bytes(self) -> int:
        return self.size

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        row = 0
        with parquet_errors(self.path), parquet_stream(self.open()) as file:
            size = self.size / max(1, file.metadata.num_rows)
            length = max(MIN_ROWS, BATCH_VALUES // len(columns))
            for rows in file.iter_batches(length, columns=list(columns)):
                yield Batch(self, row, rows, size * rows.num_rows)
                row += rows.num_rows


def open_parquet(path: Path, _header: Header = "guess") -> ParquetTable:
    """Read the column names of a Parquet file."""
    return ParquetTable.of(path, path.stat().st_size, lambda: path)


def parquet_stream(source: Any) -> pq.ParquetFile:
    """Open a Parquet file for reading in batches, column by column.

    A row group may be larger than memory, so that it is not read at a time.
    """
    return pq.ParquetFile(source, pre_buffer=False, buffer_size=BUFFER_BYTES)


@contextmanager
def parquet_errors(path: Path | str) -> Iterator[None]:
    """Turn an error of a Parquet file into a `UserError` of one line."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError) as error:
        reason = first_line(error)
        raise UserError(f"{path} is damaged or no Parquet file: {reason}.") from None


def repeatable(table: Table) -> Table:
    """A table whose every pass has the same rows in the same order.

    An engine may give the rows of a second pass in another order, so that they are
    read once, and then from a temporary Parquet file.
    """
    if table.is_repeatable:
        return table
    file = Path(mkdtemp(prefix="unalike."), "table.parquet")

    def spooled() -> Path:
        if not file.exists():
            _spool(table, file)
        return file

    copy = ParquetTable(
        table.path, table.columns, spooled, 0, one_thread=table.one_thread
    )
    finalize(copy, rmtree, file.parent, ignore_errors=True)
    return copy


def _spool(table: Table, file: Path) -> None:
    with ExitStack() as stack, write_errors(file):
        writer = None
        for batch in table.batches(table.columns):
            if writer is None:
                writer = stack.enter_context(pq.ParquetWriter(file, batch.rows.schema))
            writer.write_batch(batch.rows)
    if writer is None:
        raise UserError(f"{table.path} has no rows.")
