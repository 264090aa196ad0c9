"""CSR rows that are read from files with pread, and weights in unnamed files."""

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

# Rows are read with pread and not through a memory map: mapped pages stay resident
# until the system needs the memory, and read-ahead maps their neighbours too, so that
# a few random batches of rows would fill memory with the full matrix.


@dataclass(frozen=True, eq=False)
class ArrayFile:
    """An open file with the numbers of an array."""

    path: Path
    file: int
    """File descriptor."""
    offset: int
    """Bytes before the first number."""
    dtype: np.dtype

    @classmethod
    def open(cls, path: Path, *, size: int, dtype: np.dtype) -> ArrayFile:
        """Open a file that ends with `size` bytes of numbers."""
        file = os.open(path, os.O_RDONLY)
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
        array_file = cls(path, file, path.stat().st_size - size, dtype)
        finalize(array_file, os.close, file)
        return array_file

    def read(
        self, first: Int[Tensor, " ranges"], indptr: Int[Tensor, " ranges_and_one"]
    ) -> Shaped[Tensor, " numbers"]:
        """Ranges that begin at `first`, concatenated with the bounds `indptr`."""
        from unalike.data.numba_utils import pread_ranges

        out, size = np.empty(int(indptr[-1]), self.dtype), self.dtype.itemsize
        offsets, bounds = self.offset + size * first.numpy(), size * indptr.numpy()
        failed = pread_ranges(self.file, offsets, bounds, out.view(np.uint8))
        if failed:
            raise UserError(
                f"{self.path} cannot be read where {failed} rows should be."
            )
        return torch.from_numpy(out)


@dataclass(frozen=True, eq=False)
class FileBackedAdjacency(Adjacency):
    """A memory-mapped matrix whose rows are read from its files when selected."""

    columns_file: ArrayFile = field(kw_only=True)
    values_file: ArrayFile | None = field(kw_only=True)

    def select_rows(self, ids: Ids) -> Adjacency:
        first, indptr = row_bounds(self.indptr, ids)
        indices = self.columns_file.read(first, indptr)
        file = self.values_file
        values = None if file is None else file.read(first, indptr)
        return Adjacency(indptr, indices, self.num_cols, values)


# Weights in memory or, if they are too large, in a file.


COPIES = 4
"""Training has the weights, the best weights so far and two moments."""
MAX_MEMORY_SHARE = 0.6
"""Fraction of the free memory that these copies of a weight may take."""
MIN_FILE_BYTES = 2**24
"""Smaller weights are always in memory."""


def empty_weights(shape: Sequence[int]) -> Float[Tensor, ...]:
    """An uninitialised weight, in a file if its copies would not fit in memory."""
    size = 4 * prod(shape)
    if size > MIN_FILE_BYTES and COPIES * size > MAX_MEMORY_SHARE * free_memory(
        torch.device("cpu")
    ):
        return empty_in_file(shape)
    return torch.empty(*shape)


def empty_like(other: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """An uninitialised weight of the same shape, in a file if the other is in one."""
    in_file = not other.is_cuda and other.untyped_storage().filename is not None
    return empty_in_file(other.shape) if in_file else torch.empty_like(other)


def empty_in_file(shape: Sequence[int]) -> Float[Tensor, ...]:
    """An uninitialised weight in an unnamed file, which vanishes with the process."""
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
