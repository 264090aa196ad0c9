"""CSR arrays: transpose, select rows, subgraph, union, two-hop, blocks of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numba
import numpy as np
import scipy.sparse
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor
from torch.nn import functional as F
from torch.utils.data import get_worker_info

from unalike.data.numba_utils import binary_search, memcpy, njit, sort_range
from unalike.errors import UserError
from unalike.parallel import num_threads

SMALL_NNZ = 2**18
"""Entries up to which torch and SciPy do the work, so that nothing is compiled."""
INT32_MAX = 2**31 - 1


def index_type(size: int) -> torch.dtype:
    """The smallest integer type that holds ids below `size`."""
    return torch.int32 if size <= INT32_MAX else torch.int64


class CSRArrays(NamedTuple):
    """The arrays of a CSR matrix."""

    indptr: Int[Tensor, " rows_and_one"]
    indices: Int[Tensor, " nnz"]
    num_cols: int
    values: Float[Tensor, " nnz"] | None


@dataclass(frozen=True, eq=False)
class CSRMatrix(ABC):
    """A CSR matrix; indices[indptr[i]:indptr[i + 1]] are ascending and distinct."""

    indptr: Int[Tensor, " rows_and_one"]
    indices: Int[Tensor, " nnz"]
    num_cols: int
    values: Float[Tensor, " nnz"] | None = None
    """A value for each entry; None means that all of them are 1."""

    @property
    @abstractmethod
    def T(self) -> CSRMatrix:
        """The transpose."""

    @property
    def arrays(self) -> CSRArrays:
        """The arrays of the matrix, in the order of the constructor."""
        return CSRArrays(self.indptr, self.indices, self.num_cols, self.values)

    @cached_property
    def degrees(self) -> Int[Tensor, " rows"]:
        """Number of entries in each row."""
        return self.indptr[1:] - self.indptr[:-1]

    @cached_property
    def nonempty_rows(self) -> Int[Tensor, " nonempty"]:
        """The ids of rows with entries."""
        return self.degrees.nonzero()[:, 0]

    @property
    def num_cols_global(self) -> int:
        """Columns of the full matrix, of which this may be a shard."""
        return self.num_cols

    @property
    def local_cols(self) -> range:
        """The columns of the full matrix that this one has."""
        return range(self.num_cols)

    @property
    def global_degrees(self) -> Int[Tensor, " rows"]:
        """Number of entries in each row of the full matrix."""
        return self.degrees

    @cached_property
    def cache(self) -> dict[Any, Any]:
        """Results that depend on this matrix alone, such as propagated features."""
        return {}

    @cached_property
    def rows_by_length(self) -> Int[Tensor, " rows"]:
        """Row ids by descending length, so that long rows do not start last."""
        return self.degrees.argsort(descending=True, stable=True).int()


# Blocks of rows and ranges of columns.


def row_blocks(
    indptr: Int[np.ndarray, " rows_and_one"], max_nnz: int
) -> Iterator[tuple[int, int]]:
    """Ranges of consecutive rows with at most `max_nnz` entries, or of one long row."""
    low, num_rows = 0, len(indptr) - 1
    while low < num_rows:
        fits = int(np.searchsorted(indptr, indptr[low] + max_nnz, "right")) - 1
        high = min(num_rows, max(low + 1, fits))
        yield low, high
        low = high


def balanced_row_blocks(
    indptr: Int[np.ndarray, " rows_and_one"], block: tuple[int, int]
) -> list[tuple[int, int]]:
    """Split a range of rows into one range of about equal nnz for each thread."""
    low, high = block
    targets = np.linspace(indptr[low], indptr[high], num_threads() + 1)[1:-1]
    bounds = [low, *np.searchsorted(indptr[low:high], targets) + low, high]
    return [(int(a), int(b)) for a, b in pairwise(bounds) if a < b]


def balanced_bounds(counts: Int[Tensor, " columns"], parts: int) -> list[int]:
    """Bounds of column ranges with about equal nnz and at least one column each."""
    columns = len(counts)
    if not 1 <= parts <= columns:
        raise UserError(
            f"{columns} columns cannot be divided among {parts}; choose 1 to {columns}."
        )
    ends = counts.cumsum(0)
    targets = ends[-1] * torch.arange(1, parts) // parts
    bounds = [0]
    for part, end in enumerate(torch.searchsorted(ends, targets).tolist(), start=1):
        bounds.append(min(max(end + 1, bounds[-1] + 1), columns - parts + part))
    return [*bounds, columns]


# Select rows.


def select_rows(rows: CSRMatrix, ids: Int[Tensor, " ids"]) -> CSRArrays:
    """Some rows, in the order of `ids`, on the device of the ids."""
    first, indptr = row_bounds(rows.indptr, ids)
    values = None if rows.values is None else _copy_rows(rows.values, first, indptr)
    indices = _copy_rows(rows.indices, first, indptr)
    return CSRArrays(indptr, indices, rows.num_cols, values)


def row_bounds(
    indptr: Int[Tensor, " rows_and_one"], ids: Int[Tensor, " ids"]
) -> tuple[Int[Tensor, " ids"], Int[Tensor, " ids_and_one"]]:
    """The first entry of each selected row, and the indptr of the selected rows."""
    first, last = indptr[:-1][ids], indptr[1:][ids]
    return first, indptr_of(last - first)


def indptr_of(lengths: Int[Tensor, " rows"]) -> Int[Tensor, " rows_and_one"]:
    """The indptr of rows of these lengths."""
    return F.pad(lengths.cumsum(0), (1, 0))


def _copy_rows(
    source: Shaped[Tensor, " nnz"],
    first: Int[Tensor, " ids"],
    indptr: Int[Tensor, " ids_and_one"],
) -> Shaped[Tensor, " selected"]:
    """The entries of rows that begin at `first`, one row after the other.

    A worker of a `DataLoader` does without numba, whose threads do not survive a fork.
    """
    small = int(indptr[-1]) <= SMALL_NNZ
    if source.is_cuda or small or get_worker_info() is not None:
        shift = (first - indptr[:-1]).repeat_interleave(indptr.diff())
        return source[shift + torch.arange(len(shift), device=shift.device)]
    out = source.new_empty(int(indptr[-1]))
    _copy_ranges(out.numpy(), indptr.numpy(), source.detach().numpy(), first.numpy())
    return out


@njit(parallel=True)
def _copy_ranges(out, indptr, source, first):
    for row in numba.prange(len(first)):
        begin = indptr[row]
        memcpy(out, begin, source, first[row], indptr[row + 1] - begin)


# Slice columns.


def slice_columns(rows: CSRMatrix, columns: range) -> CSRArrays:
    """The entries in a range of columns, which are renumbered from 0."""
    arrays = (rows.indptr.numpy(), rows.indices.numpy())
    counts = _count_in_range(*arrays, columns.start, columns.stop)
    first, indptr = map(torch.from_numpy, counts)
    indices = _copy_rows(rows.indices, first, indptr).sub_(columns.start)
    values = None if rows.values is None else rows.values.float()
    values = None if values is None else _copy_rows(values, first, indptr)
    return CSRArrays(indptr, indices, len(columns), values)


@njit(parallel=True)
def _count_in_range(indptr, indices, low, high):
    """The first entry of each row in the range, and the indptr of the slice."""
    num_rows = len(indptr) - 1
    first, bounds = np.empty(num_rows, np.int64), np.zeros(num_rows + 1, np.int64)
    for row in numba.prange(num_rows):
        columns = indices[indptr[row] : indptr[row + 1]]
        begin = np.searchsorted(columns, low)
        first[row] = indptr[row] + begin
        bounds[row + 1] = np.searchsorted(columns, high) - begin
    for row in range(num_rows):
        bounds[row + 1] += bounds[row]
    return first, bounds


# Subgraph.


@contextmanager
def new_ids(rows: CSRMatrix) -> Iterator[Int[Tensor, " columns"]]:
    """A CPU array of -1 for each column; the caller resets the entries that it sets.

    It is cached with the matrix, so that a small subgraph does not cost the number of
    columns. A thread that finds it in use gets another one.
    """
    key = "new ids"
    array = rows.cache.pop(key, None)
    if array is None:
        array = torch.full((rows.num_cols,), -1, dtype=rows.indices.dtype)
    yield array
    rows.cache[key] = array


def subgraph(
    rows: CSRMatrix, ids: Int[Tensor, " ids"], part: Int[Tensor, " ids"] | None = None
) -> CSRArrays:
    """The entries between distinct `ids`, renumbered; within parts if given."""
    select = subgraph_torch if rows.indices.is_cuda else subgraph_cpu
    return select(rows, ids, part)


def subgraph_torch(
    rows: CSRMatrix, ids: Int[Tensor, " ids"], part: Int[Tensor, " ids"] | None = None
) -> CSRArrays:
    """The subgraph by torch operations on any device."""
    size, device = len(ids), ids.device
    new_id = torch.full((rows.num_cols,), -1, dtype=torch.int64, device=device)
    new_id[ids] = torch.arange(size, device=device)
    lengths = rows.degrees[ids]
    row = torch.arange(size, device=device).repeat_interleave(lengths)
    shift = rows.indptr[:-1][ids] - (lengths.cumsum(0) - lengths)
    entry = shift[row] + torch.arange(len(row), device=device)
    column = new_id[rows.indices[entry].long()]
    inside = column >= 0
    if part is not None:
        inside &= part[row] == part[column]
    row, column, entry = row[inside], column[inside], entry[inside]
    order = (row * size + column).argsort()
    indptr = indptr_of(row.bincount(minlength=size))
    values = None if rows.values is None else rows.values[entry[order]]
    return CSRArrays(indptr, column[order].to(rows.indices.dtype), size, values)


def subgraph_cpu(
    rows: CSRMatrix, ids: Int[Tensor, " ids"], part: Int[Tensor, " ids"] | None = None
) -> CSRArrays:
    """The subgraph by a compiled loop on the CPU."""
    columns, nodes, size = rows.indices.numpy(), ids.numpy(), len(ids)
    weights = np.empty(0, np.float32) if rows.values is None else rows.values.numpy()
    bounds = (rows.indptr[:-1][ids].numpy(), rows.indptr[1:][ids].numpy())
    parts = np.empty(0, np.int64) if part is None else part.numpy()
    with new_ids(rows) as numbers:
        new_id = numbers.numpy()
        new_id[nodes] = np.arange(size, dtype=columns.dtype)
        indptr, indices, data = _subgraph_loop(*bounds, columns, weights, new_id, parts)
        new_id[nodes] = -1
    if (nodes[1:] < nodes[:-1]).any():
        _sort_rows(indptr, indices, data)
    values = None if rows.values is None else torch.from_numpy(data)
    return CSRArrays(torch.from_numpy(indptr), torch.from_numpy(indices), size, values)


@njit()
def _subgraph_loop(first, last, columns, weights, new_id, part):
    """One thread, so that many small batches do not wait for others to wake up."""
    capacity = (last - first).sum() + 1
    indptr = np.zeros(len(first) + 1, np.int64)
    indices = np.empty(capacity, columns.dtype)
    data = np.empty(capacity if len(weights) else 0, weights.dtype)
    end = 0
    for row in range(len(first)):
        for entry in range(first[row], last[row]):
            # Written before it is known to be inside: a mispredicted branch costs more.
            column = new_id[columns[entry]]
            indices[end] = column
            if len(weights):
                data[end] = weights[entry]
            inside = column >= 0
            if len(part):
                inside = inside and part[column] == part[row]
            end += inside
        indptr[row + 1] = end
    return indptr, indices[:end].copy(), data[:end].copy()


@njit()
def _sort_rows(indptr, indices, data):
    for row in range(len(indptr) - 1):
        sort_range(indices, data, indptr[row], indptr[row + 1])


# Diagonal.


def diagonal(rows: CSRMatrix) -> Float[Tensor, " rows"]:
    """The value of each row on the diagonal; 0 without an entry there."""
    if rows.indices.is_cuda or len(rows.indices) <= SMALL_NNZ:
        return _diagonal_torch(rows)
    values = torch.empty(0) if rows.values is None else rows.values.float()
    result = torch.zeros(len(rows.indptr) - 1)
    arrays = (rows.indptr, rows.indices, values, result)
    _diagonal_loop(*(array.numpy() for array in arrays))
    return result


@njit(parallel=True)
def _diagonal_loop(indptr, indices, values, result):
    for row in numba.prange(len(result)):
        entry = binary_search(indices, indptr[row], indptr[row + 1], row)
        if entry >= 0:
            result[row] = values[entry] if len(values) else 1


def _diagonal_torch(rows: CSRMatrix) -> Float[Tensor, " rows"]:
    """The diagonal by torch operations that do not synchronise with a GPU."""
    num_rows, nnz = len(rows.indptr) - 1, len(rows.indices)
    row_ids = torch.arange(num_rows, device=rows.indices.device)
    row = row_ids.repeat_interleave(rows.degrees, output_size=nnz)
    on_diagonal = (rows.indices == row).float()
    values = on_diagonal if rows.values is None else on_diagonal * rows.values
    return torch.zeros(num_rows, device=row.device).index_add_(0, row, values)


# Transpose.


def transpose(rows: CSRMatrix) -> CSRArrays:
    """The transpose; entries of a column stay in the order of their rows."""
    num_rows = len(rows.indptr) - 1
    if rows.indices.is_cuda:
        _, indices, values = _sort_by_column(rows, num_rows)
        indptr = indptr_of(rows.indices.bincount(minlength=rows.num_cols))
        return CSRArrays(indptr, indices, num_rows, values)
    small = len(rows.indices) <= SMALL_NNZ
    return (_transpose_scipy if small else _transpose_cpu)(rows, num_rows)


def _transpose_scipy(rows: CSRMatrix, num_rows: int) -> CSRArrays:
    values = torch.empty_like(rows.indices) if rows.values is None else rows.values
    arrays = (values.numpy(), rows.indices.numpy(), rows.indptr.numpy())
    matrix = scipy.sparse.csr_array(arrays, shape=(num_rows, rows.num_cols)).tocsc()
    indptr = torch.from_numpy(matrix.indptr).long()
    indices = torch.from_numpy(matrix.indices).to(index_type(num_rows))
    data = None if rows.values is None else torch.from_numpy(matrix.data)
    return CSRArrays(indptr, indices, num_rows, data)


def _transpose_cpu(rows: CSRMatrix, num_rows: int) -> CSRArrays:
    values = torch.empty(0) if rows.values is None else rows.values
    indptr = torch.zeros(rows.num_cols + 1, dtype=torch.int64)
    indices = torch.empty(len(rows.indices), dtype=index_type(num_rows))
    data = torch.empty_like(values)
    _count_columns(rows.indices.numpy(), indptr.numpy(), num_threads())
    arrays = (rows.indptr, rows.indices, values, indptr, indices, data)
    _scatter_columns(num_threads(), *(array.numpy() for array in arrays))
    return CSRArrays(indptr, indices, num_rows, None if rows.values is None else data)


@njit(parallel=True)
def _count_columns(columns, ends, threads):
    """Every thread counts the entries of its own range of columns."""
    num_cols = len(ends) - 1
    for thread in numba.prange(threads):
        low, high = thread * num_cols // threads, (thread + 1) * num_cols // threads
        for entry in range(len(columns)):
            if low <= columns[entry] < high:
                ends[columns[entry] + 1] += 1
    for column in range(num_cols):
        ends[column + 1] += ends[column]


@njit(parallel=True)
def _scatter_columns(threads, indptr, indices, values, out_indptr, out_indices, data):
    """Every thread scatters the entries of its own range of columns."""
    num_cols, num_rows = len(out_indptr) - 1, len(indptr) - 1
    for thread in numba.prange(threads):
        low, high = thread * num_cols // threads, (thread + 1) * num_cols // threads
        cursor = out_indptr[low:high].copy()
        for row in range(num_rows):
            for entry in range(indptr[row], indptr[row + 1]):
                column = indices[entry]
                if low <= column < high:
                    position = cursor[column - low]
                    cursor[column - low] = position + 1
                    out_indices[position] = row
                    if len(values):
                        data[position] = values[entry]


def _sort_by_column(
    rows: CSRMatrix, num_rows: int
) -> tuple[Int[Tensor, " nnz"], Int[Tensor, " nnz"], Float[Tensor, " nnz"] | None]:
    """Column, row and value of each entry in the order of the transpose."""
    columns, order = rows.indices.sort(stable=True)
    row_ids = torch.arange(num_rows, dtype=index_type(num_rows), device=order.device)
    row = row_ids.repeat_interleave(rows.degrees, output_size=len(order))
    values = None if rows.values is None else rows.values[order]
    return columns, row[order], values


def nonempty_columns(rows: CSRMatrix) -> tuple[Int[Tensor, " nonempty"], CSRArrays]:
    """The columns with entries in ascending order, and their rows of the transpose.

    A CPU sorts an entry about as fast as it counts a column.
    """
    num_rows = len(rows.indptr) - 1
    if rows.indices.is_cuda or len(rows.indices) < rows.num_cols:
        columns, indices, values = _sort_by_column(rows, num_rows)
        ids, counts = columns.unique_consecutive(return_counts=True)
    else:
        indptr, indices, _, values = transpose(rows)
        counts = indptr.diff()
        ids = counts.nonzero()[:, 0]
        counts = counts[ids]
    return ids.long(), CSRArrays(indptr_of(counts), indices, num_rows, values)


# Union.


def union(a: scipy.sparse.sparray, b: scipy.sparse.sparray) -> scipy.sparse.csr_array:
    """The entries of either matrix; where both have one, the larger value."""
    if a.dtype == b.dtype == np.int8:
        return a.maximum(b)
    # The maximum takes a missing entry for 0, which is larger than a negative value:
    # entries that only one matrix has are added to the other first.
    in_a, in_b = abs(a.sign()), abs(b.sign())
    in_both = in_a.multiply(in_b)
    a_filled = a + b.multiply(in_b - in_both)
    return a_filled.maximum(b + a.multiply(in_a - in_both))
