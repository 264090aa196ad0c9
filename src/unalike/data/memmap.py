"""File-backed CSR rows (pread) and file-backed weights."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from tempfile import NamedTemporaryFile
from weakref import finalize

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from unalike.data.adjacency import Adjacency, Ids
from unalike.data.csr import row_bounds
from unalike.errors import UserError
from unalike.system import cache_dir, free_memory

# Filed rows: a sparse matrix in files, of which rows are read when asked for.
#
# What a map shows stays resident until the system needs the memory, and a page that is
# looked at brings its neighbours along: a few random batches of rows would fill memory
# with the whole matrix.


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
        from unalike.data.numba_utils import pread_ranges

        out, size = np.empty(int(starts[-1]), self.dtype), self.dtype.itemsize
        places, begins = self.offset + size * first.numpy(), size * starts.numpy()
        failed = pread_ranges(self.file, places, begins, out.view(np.uint8))
        if failed:
            raise UserError(
                f"{self.path} cannot be read where {failed} rows should be."
            )
        return torch.from_numpy(out)


@dataclass(frozen=True, eq=False)
class FileBackedAdjacency(Adjacency):
    """Mapped rows that are read from their files where only some are wanted."""

    columns_file: ArrayFile = field(kw_only=True)
    values_file: ArrayFile | None = field(kw_only=True)

    def select_rows(self, ids: Ids) -> Adjacency:
        first, starts = row_bounds(self.indptr, ids)
        columns = self.columns_file.read(first, starts)
        weights = self.values_file
        values = None if weights is None else weights.read(first, starts)
        return Adjacency(starts, columns, self.num_cols, values)


# Spacious: room for weights, in memory or, where they would fill it, in a file.


COPIES = 4
"""Training keeps the weights, the best so far and two moments."""
MAX_MEMORY_SHARE = 0.6
"""Share of the free memory that these copies of a table may take."""
MIN_FILE_BYTES = 2**24
"""Bytes that are never worth a file."""


def empty_weights(shape: Sequence[int]) -> Float[Tensor, ...]:
    """Unset numbers, in a file if memory could not hold their copies as well."""
    size = 4 * prod(shape)
    if size > MIN_FILE_BYTES and COPIES * size > MAX_MEMORY_SHARE * free_memory(
        torch.device("cpu")
    ):
        return empty_in_file(shape)
    return torch.empty(*shape)


def empty_like(other: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Unset numbers of the same shape, in memory or in a file as the others are."""
    in_file = not other.is_cuda and other.untyped_storage().filename is not None
    return empty_in_file(other.shape) if in_file else torch.empty_like(other)


def empty_in_file(shape: Sequence[int]) -> Float[Tensor, ...]:
    """Unset numbers in a file that has no name, so that nothing is ever left of it."""
    folder, size = cache_dir() / "weights", 4 * prod(shape)
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if size > free:
        raise UserError(
            f"Weights of {size / 2**30:.1f} GiB fit neither into memory nor into "
            f"{folder}, which has {free / 2**30:.1f} GiB left."
        )
    with NamedTemporaryFile(dir=folder) as file:
        file.truncate(size)
        numbers = torch.from_file(file.name, shared=True, size=size // 4)
    return numbers.view(*shape)
