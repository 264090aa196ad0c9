"""Filed rows: a sparse matrix in files, of which rows are read when asked for.

What a map shows stays resident until the system needs the memory, and a page that is
looked at brings its neighbours along: a few random batches of rows would fill memory
with the whole matrix.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from weakref import finalize

import numpy as np
import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from unalike.adjacency import Adjacency, Ids
from unalike.errors import UserError
from unalike.kernels.rows import bounds_of


@dataclass(frozen=True, eq=False)
class ArrayFile:
    """The numbers of an array, in their file."""

    path: Path
    file: int
    """The system's number of the open file."""
    offset: int
    """Bytes before the first number."""
    dtype: np.dtype

    @classmethod
    def open(cls, path: Path, *, size: int, dtype: np.dtype) -> ArrayFile:
        """Open a file that ends with `size` bytes of numbers."""
        file = os.open(path, os.O_RDONLY)
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
        found = cls(path, file, path.stat().st_size - size, dtype)
        finalize(found, os.close, file)
        return found

    def read(
        self, first: Int[Tensor, " runs"], starts: Int[Tensor, " runs_and_one"]
    ) -> Shaped[Tensor, " numbers"]:
        """The numbers from each `first` on, run behind run, which begin at `starts`."""
        from unalike.kernels.files import read_runs

        out, size = np.empty(int(starts[-1]), self.dtype), self.dtype.itemsize
        places, begins = self.offset + size * first.numpy(), size * starts.numpy()
        failed = read_runs(self.file, places, begins, out.view(np.uint8))
        if failed:
            raise UserError(
                f"{self.path} cannot be read where {failed} rows should be."
            )
        return torch.from_numpy(out)


@dataclass(frozen=True, eq=False)
class FiledRows(Adjacency):
    """Mapped rows that are read from their files where only some are wanted."""

    columns_file: ArrayFile = field(kw_only=True)
    values_file: ArrayFile | None = field(kw_only=True)

    def rows(self, ids: Ids) -> Adjacency:
        first, starts = bounds_of(self.starts, ids)
        columns = self.columns_file.read(first, starts)
        weights = self.values_file
        values = None if weights is None else weights.read(first, starts)
        return Adjacency(starts, columns, self.width, values)
