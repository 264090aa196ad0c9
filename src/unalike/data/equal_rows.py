"""Groups of rows of a CSR matrix with equal entries, found by hashes of the rows."""

from __future__ import annotations

from typing import no_type_check

import numba
import numpy as np
import torch
from jaxtyping import Float, Int, UInt64
from torch import Tensor

from unalike.data.csr import CSRMatrix
from unalike.data.numba_utils import STEP, mix64, njit

DENSE_ROWS = 65_536
"""Rows of a dense matrix that are read at once."""


def equal_rows(matrix: CSRMatrix, *, loops: bool = True) -> Int[Tensor, " rows"]:
    """The number of the group of rows with the same entries; empty rows are alone.

    Without `loops`, entries on the diagonal do not count. One pass over the entries,
    which may be memory-mapped; the memory is three numbers per row.
    """
    values = np.empty(0, np.uint32)
    if matrix.values is not None:
        values = matrix.values.float().numpy().view(np.uint32)
    keys = np.empty((len(matrix.indptr) - 1, 2), np.uint64)
    _hash_rows(matrix.indptr.numpy(), matrix.indices.numpy(), values, loops, keys)
    return torch.from_numpy(group_numbers(keys))


def equal_dense_rows(x: Float[Tensor, "rows columns"]) -> Int[Tensor, " rows"]:
    """The number of the group of rows with the same values; zero rows are alone."""
    keys = np.empty((len(x), 2), np.uint64)
    for low in range(0, len(x), DENSE_ROWS):
        part = x[low : low + DENSE_ROWS].float().contiguous().numpy()
        _hash_dense_rows(part.view(np.uint32), part, low, keys[low : low + DENSE_ROWS])
    return torch.from_numpy(group_numbers(keys))


def group_numbers(keys: UInt64[np.ndarray, "rows parts"]) -> Int[np.ndarray, " rows"]:
    """Numbers from 0 that are the same for equal keys."""
    order = np.lexsort(keys.T)
    ordered = keys[order]
    numbers = np.zeros(len(keys), np.int64)
    numbers[order[1:]] = (ordered[1:] != ordered[:-1]).any(1).cumsum()
    return numbers


@no_type_check
@njit(parallel=True)
def _hash_rows(indptr, indices, values, loops, keys):
    """Two hashes per row: sums over its entries of a hash of column and value.

    An empty row has its own number instead, so that its key is its alone.
    """
    for row in numba.prange(len(keys)):
        first, second, count = np.uint64(0), np.uint64(0), 0
        for entry in range(indptr[row], indptr[row + 1]):
            if indices[entry] == row and not loops:
                continue
            key = mix64(np.uint64(indices[entry]) + STEP)
            if len(values):
                key = mix64(key + np.uint64(values[entry]))
            first += key
            second += mix64(key + STEP)
            count += 1
        keys[row, 0] = first if count else np.uint64(row)
        keys[row, 1] = second if count else np.uint64(0)


@no_type_check
@njit(parallel=True)
def _hash_dense_rows(bits, x, first_row, keys):
    """The same hashes over the values that are not 0."""
    for row in numba.prange(len(keys)):
        first, second, count = np.uint64(0), np.uint64(0), 0
        for column in range(x.shape[1]):
            if x[row, column] != 0:
                key = mix64(np.uint64(column) + STEP)
                key = mix64(key + np.uint64(bits[row, column]))
                first += key
                second += mix64(key + STEP)
                count += 1
        keys[row, 0] = first if count else np.uint64(first_row + row)
        keys[row, 1] = second if count else np.uint64(0)
