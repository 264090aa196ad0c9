"""Frames of pandas, polars, PyArrow, DuckDB and Spark as tables, read in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import narwhals as nw
import pyarrow as pa

from unalike.errors import UserError, first_line
from unalike.importing.tables import Batch, Table

FRAME_ROWS = 1 << 17
"""Rows of a frame in a batch."""

ENGINES = ("_duckdb", "duckdb", "narwhals", "polars", "py4j", "pyarrow", "pyspark")
"""Packages whose exceptions are those of an engine."""

Frame: TypeAlias = nw.DataFrame[Any] | nw.LazyFrame[Any]


@dataclass(frozen=True, eq=False)
class FrameTable(Table):
    """A frame of pandas, polars, PyArrow, DuckDB or Spark, read in batches.

    What is lazy stays lazy: the engine runs when batches are read, and streams them.
    """

    frame: Frame

    @classmethod
    def of(cls, value: Any, what: Path | str) -> FrameTable:
        """The table of a frame, or of anything else that Arrow can read."""
        if type(value).__module__.partition(".")[0] == "pandas":
            value = value.rename(columns=str)
        try:
            frame = nw.from_native(value, pass_through=True)
            if not isinstance(frame, nw.DataFrame | nw.LazyFrame):
                frame = nw.from_native(pa.table(value))
            columns = frame.collect_schema().names()
            in_memory = isinstance(frame, nw.DataFrame)
            return cls(what, columns, frame, is_repeatable=in_memory)
        except Exception as error:  # of Arrow or of the library of the frame
            reason = first_line(error)
            raise UserError(f"{what} cannot be read as a table: {reason}.") from None

    @property
    def num_bytes(self) -> int:
        """Its size; 0 for a lazy frame, whose size is not known before it is read."""
        if isinstance(self.frame, nw.LazyFrame):
            return 0
        return int(self.frame.estimated_size())

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        row, size = 0, 0.0
        if isinstance(self.frame, nw.DataFrame):
            size = self.num_bytes / max(1, len(self.frame))
        with engine_errors(self.path):
            for rows in arrow_batches(self.frame.select(list(columns))):
                yield Batch(self, row, rows, size * rows.num_rows)
                row += rows.num_rows


@contextmanager
def engine_errors(path: Path | str) -> Iterator[None]:
    """Turn an error of the engine that reads a table into a `UserError` of one line."""
    try:
        yield
    except Exception as error:
        package = type(error).__module__.partition(".")[0]
        others = OSError | UnicodeError | OverflowError
        if package not in ENGINES and not isinstance(error, others):
            raise
        # The first line of a Py4JJavaError does not say what failed in Java.
        reason = first_line(getattr(error, "java_exception", error))
        raise UserError(f"{path} cannot be read: {reason}.") from None


def arrow_batches(frame: Frame, max_rows: int = FRAME_ROWS) -> Iterator[pa.RecordBatch]:
    """The rows of a frame as Arrow batches; a lazy frame is never collected whole."""
    native, engine = frame.to_native(), frame.implementation
    if isinstance(frame, nw.DataFrame):
        try:
            table = frame.to_arrow()
        except TypeError as error:  # PyArrow has no sparse columns of pandas.
            raise pa.ArrowTypeError(str(error)) from None
        yield from table.combine_chunks().to_batches(max_rows)
    elif engine.is_duckdb():
        # An open reader would keep other queries off the connection.
        with native.to_arrow_reader(max_rows) as reader:
            yield from reader
    elif engine.is_polars():
        for part in native.collect_batches(chunk_size=max_rows, maintain_order=True):
            yield from part.to_arrow().to_batches(max_rows)
    elif engine.is_pyspark() or engine.is_pyspark_connect():
        yield from _spark_batches(native)
    else:
        yield from arrow_batches(frame.collect("pyarrow"), max_rows)


def _spark_batches(frame: Any) -> Iterator[pa.RecordBatch]:
    """Arrow batches of a Spark DataFrame, one partition on the driver at a time."""
    # Spark sends a lambda by value, so that workers need PyArrow alone.
    sent = frame.mapInArrow(
        lambda batches: (
            pa.record_batch(
                {
                    "schema": [batch.schema.serialize().to_pybytes()],
                    "batch": [batch.serialize().to_pybytes()],
                }
            )
            for batch in batches
        ),
        "schema binary, batch binary",
    )
    for row in sent.toLocalIterator():
        schema = pa.ipc.read_schema(pa.py_buffer(row["schema"]))
        yield pa.ipc.read_record_batch(pa.py_buffer(row["batch"]), schema)
