"""Parquet tables: typed columns, read a stretch of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from unalike.errors import UserError
from unalike.importing.batch import Batch, Header

VALUES = 1 << 21
"""Values in a batch; also bounds what is decoded at once."""
FEWEST = 1 << 12
"""Rows in a batch at least."""
BUFFER = 1 << 22


@dataclass(frozen=True)
class ParquetTable:
    """A Parquet file and the names of its columns."""

    path: Path
    columns: list[str]
    note: ClassVar[str | None] = None
    doubtful: ClassVar[bool] = False

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        row = 0
        try:
            with _opened(self.path) as file:
                size = self.path.stat().st_size / max(1, file.metadata.num_rows)
                length = max(FEWEST, VALUES // len(columns))
                for rows in file.iter_batches(length, columns=list(columns)):
                    yield Batch(self, row, rows, size * rows.num_rows)
                    row += rows.num_rows
        except (pa.ArrowException, OSError) as error:
            raise _damaged(self.path, error) from None

    def place(self, row: int) -> str:
        return f"{self.path}, row {row + 1}"


def open_parquet(path: Path, _header: Header) -> ParquetTable:
    """Read the schema of a Parquet file."""
    try:
        with _opened(path) as file:
            return ParquetTable(path, file.schema_arrow.names)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, error) from None


def _opened(path: Path) -> pq.ParquetFile:
    # Buffered column by column: a row group may be larger than memory.
    return pq.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER)


def _damaged(path: Path, error: Exception) -> UserError:
    if path.stat().st_size == 0:
        return UserError(f"{path} is empty.")
    return UserError(f"{path} is damaged or no Parquet file: {error}")
