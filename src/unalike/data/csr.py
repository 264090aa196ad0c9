"""Cut CSR rows into blocks of bounded or equal nnz."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numba
import numpy as np
import scipy.sparse
import torch
from jaxtyping import Float, Int, Shaped
from scipy import sparse
from torch import Tensor

from unalike.data.numba_utils import SMALL, binary_search, memcpy, njit, sort_range
from unalike.errors import UserError
from unalike.parallel import num_threads

# Rows: what a kernel reads of a sparse matrix.


class CSRArrays(NamedTuple):
    """The arrays of sparse rows, as a kernel makes them."""

    indptr: Int[Tensor, " rows_and_one"]
    indices: Int[Tensor, " edges"]
    num_cols: int
    values: Float[Tensor, " edges"] | None


@dataclass(frozen=True, eq=False)
class CSRMatrix(ABC):
    """Row i holds columns[starts[i]:starts[i + 1]], ascending and without repeats."""

    indptr: Int[Tensor, " rows_and_one"]
    indices: Int[Tensor, " edges"]
    num_cols: int
    values: Float[Tensor, " edges"] | None = None
    """A weight for each entry; None means that all of them are 1."""

    @property
    @abstractmethod
    def T(self) -> CSRMatrix:
        """The same entries with rows and columns exchanged."""

    @cached_property
    def degrees(self) -> Int[Tensor, " rows"]:
        """Entries in each row."""
        return self.indptr[1:] - self.indptr[:-1]

    @property
    def num_cols_global(self) -> int:
        """Columns of the whole matrix, some of which others may hold."""
        return self.num_cols

    @property
    def local_cols(self) -> range:
        """Those of them that are here."""
        return range(self.num_cols)

    @property
    def global_degrees(self) -> Int[Tensor, " rows"]:
        """Entries in each row of the whole matrix."""
        return self.degrees

    @cached_property
    def cache(self) -> dict[Any, Any]:
        """A place for what was propagated along these entries once and for all."""
        return {}

    @cached_property
    def rows_by_length(self) -> Int[Tensor, " rows"]:
        """The rows by falling length, so that the longest are not begun last."""
        return self.degrees.argsort(descending=True, stable=True).int()


def row_bounds(
    starts: Int[Tensor, " rows_and_one"], ids: Int[Tensor, " ids"]
) -> tuple[Int[Tensor, " ids"], Int[Tensor, " ids_and_one"]]:
    """Where some rows begin, and where they do when one is put behind the other."""
    first, last = starts[:-1][ids], starts[1:][ids]
    begins = torch.zeros(len(ids) + 1, dtype=torch.int64, device=ids.device)
    torch.cumsum(last - first, 0, out=begins[1:])
    return first, begins


# Columns: a range of them, cut out of sparse rows.


def slice_columns(rows: CSRMatrix, held: range) -> CSRArrays:
    """The entries in a range of columns, which count from its beginning."""
    starts, columns = rows.indptr.numpy(), rows.indices.numpy()
    first, begins = _count_in_range(starts, columns, held.start, held.stop)
    found = np.empty(begins[-1], columns.dtype)
    _copy(found, begins, columns, first)
    found -= found.dtype.type(held.start)
    values = None
    if rows.values is not None:
        kept = np.empty(begins[-1], np.float32)
        _copy(kept, begins, rows.values.float().numpy(), first)
        values = torch.from_numpy(kept)
    cut = torch.from_numpy(begins), torch.from_numpy(found)
    return CSRArrays(*cut, len(held), values)


@njit(parallel=True)
def _count_in_range(starts, columns, low, high):
    """Where the range begins in each row, and where it does in what is cut out."""
    count = len(starts) - 1
    first, begins = np.empty(count, np.int64), np.zeros(count + 1, np.int64)
    for row in numba.prange(count):
        here = columns[starts[row] : starts[row + 1]]
        begin = np.searchsorted(here, low)
        first[row] = starts[row] + begin
        begins[row + 1] = np.searchsorted(here, high) - begin
    for row in range(count):
        begins[row + 1] += begins[row]
    return first, begins


@njit(parallel=True)
def _copy(out, begins, part, first):
    for row in numba.prange(len(first)):
        begin = begins[row]
        memcpy(out, begin, part, first[row], begins[row + 1] - begin)


# Shard: a range of the columns of a sparse matrix; others hold the rest.


def balanced_bounds(counts: Int[Tensor, " columns"], parts: int) -> list[int]:
    """Where ranges of columns with about equally many entries begin and end.

    Each has a column at least.
    """
    columns = len(counts)
    if not 1 <= parts <= columns:
        raise UserError(
            f"{columns} columns cannot be divided among {parts}; choose 1 to {columns}."
        )
    ends = counts.cumsum(0)
    wanted = ends[-1] * torch.arange(1, parts) // parts
    bounds = [0]
    for part, end in enumerate(torch.searchsorted(ends, wanted).tolist(), start=1):
        bounds.append(min(max(end + 1, bounds[-1] + 1), columns - parts + part))
    return [*bounds, columns]


# The kernels on processor cores: torch's embedding bag, and compiled loops.


def select_rows_cpu(rows: CSRMatrix, ids: Int[Tensor, " ids"]) -> CSRArrays:
    """Some rows, in the order of `ids`: their starts, columns and values."""
    first, starts = row_bounds(rows.indptr, ids)
    values = None if rows.values is None else _copied_rows(rows.values, first, starts)
    columns = _copied_rows(rows.indices, first, starts)
    return CSRArrays(starts, columns, rows.num_cols, values)


def _copied_rows(
    part: Shaped[Tensor, " edges"],
    first: Int[Tensor, " ids"],
    starts: Int[Tensor, " ids_and_one"],
) -> Shaped[Tensor, " taken"]:
    total = int(starts[-1])
    if total <= SMALL:
        shift = (first - starts[:-1]).repeat_interleave(starts.diff())
        return part[shift + torch.arange(total)]
    out = part.new_empty(total)
    _copy_rows(part.detach().numpy(), first.numpy(), starts.numpy(), out.numpy())
    return out


@njit(parallel=True)
def _copy_rows(part, first, starts, out):
    for row in numba.prange(len(first)):
        begin = starts[row]
        memcpy(out, begin, part, first[row], starts[row + 1] - begin)


def subgraph_cpu(
    rows: CSRMatrix, ids: Int[Tensor, " ids"], part: Int[Tensor, " ids"] | None = None
) -> CSRArrays:
    """The entries between distinct `ids`, or of like parts of them, renumbered."""
    columns, chosen, size = rows.indices.numpy(), ids.numpy(), len(ids)
    place = np.full(rows.num_cols, -1, columns.dtype)
    place[chosen] = np.arange(size, dtype=columns.dtype)
    weights = np.empty(0, np.float32) if rows.values is None else rows.values.numpy()
    bounds = (rows.indptr[ids].numpy(), rows.indptr[ids + 1].numpy())
    apart = np.empty(0, np.int64) if part is None else part.numpy()
    starts, found, kept = _subgraph_loop(*bounds, columns, weights, place, apart)
    if (chosen[1:] < chosen[:-1]).any():
        _sort_rows(starts, found, kept)
    values = None if rows.values is None else torch.from_numpy(kept)
    return CSRArrays(torch.from_numpy(starts), torch.from_numpy(found), size, values)


@njit()
def _subgraph_loop(first, last, columns, weights, place, part):
    """One thread, so that many small batches do not wait for others to wake up."""
    room = (last - first).sum() + 1
    starts = np.zeros(len(first) + 1, np.int64)
    found = np.empty(room, columns.dtype)
    kept = np.empty(room if len(weights) else 0, weights.dtype)
    end = 0
    for row in range(len(first)):
        for entry in range(first[row], last[row]):
            # Written before it is known to be wanted: a wrong guess costs more.
            column = place[columns[entry]]
            found[end] = column
            if len(weights):
                kept[end] = weights[entry]
            inside = column >= 0
            if len(part):
                inside = inside and part[column] == part[row]
            end += inside
        starts[row + 1] = end
    return starts, found[:end].copy(), kept[:end].copy()


@njit()
def _sort_rows(starts, columns, weights):
    for row in range(len(starts) - 1):
        sort_range(columns, weights, starts[row], starts[row + 1])


# Loops: the entries of sparse rows that lie on the diagonal.


def diagonal(rows: CSRMatrix) -> Float[Tensor, " rows"]:
    """What each row holds on the diagonal; 0 where it holds nothing there."""
    small = len(rows.indices) <= SMALL
    return (_by_torch if rows.indices.is_cuda or small else _diagonal_cpu)(rows)


def _diagonal_cpu(rows: CSRMatrix) -> Float[Tensor, " rows"]:
    values = torch.empty(0) if rows.values is None else rows.values
    found = torch.zeros(len(rows.indptr) - 1)
    _find_diagonal(
        rows.indptr.numpy(), rows.indices.numpy(), values.float().numpy(), found.numpy()
    )
    return found


@njit(parallel=True)
def _find_diagonal(starts, columns, values, found):
    for row in numba.prange(len(found)):
        place = binary_search(columns, starts[row], starts[row + 1], row)
        if place >= 0:
            found[row] = values[place] if len(values) else 1


def _by_torch(rows: CSRMatrix) -> Float[Tensor, " rows"]:
    """Nothing here waits for a GPU."""
    count, entries = len(rows.indptr) - 1, len(rows.indices)
    numbers = torch.arange(count, device=rows.indices.device)
    row = numbers.repeat_interleave(rows.degrees, output_size=entries)
    on = (rows.indices == row).float()
    values = on if rows.values is None else on * rows.values
    return torch.zeros(count, device=on.device).index_add_(0, row, values)


# The kernels in plain tensor operations: slow, obviously right, the oracle.


def select_rows_torch(rows: CSRMatrix, ids: Int[Tensor, " ids"]) -> CSRArrays:
    """Some rows, in the order of `ids`: their starts, columns and values."""
    first, starts = row_bounds(rows.indptr, ids)
    shift = (first - starts[:-1]).repeat_interleave(starts.diff())
    entries = shift + torch.arange(len(shift), device=ids.device)
    values = None if rows.values is None else rows.values[entries]
    return CSRArrays(starts, rows.indices[entries], rows.num_cols, values)


def subgraph_torch(
    rows: CSRMatrix, ids: Int[Tensor, " ids"], part: Int[Tensor, " ids"] | None = None
) -> CSRArrays:
    """The entries between distinct `ids`, or of like parts of them, renumbered."""
    size, device = len(ids), ids.device
    place = torch.full((rows.num_cols,), -1, dtype=torch.int64, device=device)
    place[ids] = torch.arange(size, device=device)
    lengths = rows.degrees[ids]
    row = torch.arange(size, device=device).repeat_interleave(lengths)
    shift = rows.indptr[ids] - (lengths.cumsum(0) - lengths)
    entry = shift[row] + torch.arange(len(row), device=device)
    column = place[rows.indices[entry].long()]
    inside = column >= 0
    if part is not None:
        inside &= part[row] == part[column]
    row, column, entry = row[inside], column[inside], entry[inside]
    order = (row * size + column).argsort()
    starts = torch.zeros(size + 1, dtype=torch.int64, device=device)
    torch.cumsum(row.bincount(minlength=size), 0, out=starts[1:])
    values = None if rows.values is None else rows.values[entry[order]]
    return CSRArrays(starts, column[order].to(rows.indices.dtype), size, values)


# Transposition: the entries of sparse rows by their columns, with nothing compared.


def transpose(rows: CSRMatrix) -> CSRArrays:
    """The same entries with rows and columns exchanged.

    Entries of a column remain in the order of their rows.
    """
    count = len(rows.indptr) - 1
    kind = torch.int32 if count <= torch.iinfo(torch.int32).max else torch.int64
    if rows.indices.is_cuda:
        return _transpose_cuda(rows, count, kind)
    small = len(rows.indices) <= SMALL
    return (_by_scipy if small else _transpose_cpu)(rows, count, kind)


def _by_scipy(rows: CSRMatrix, count: int, kind: torch.dtype) -> CSRArrays:
    values = torch.empty_like(rows.indices) if rows.values is None else rows.values
    given = (values.numpy(), rows.indices.numpy(), rows.indptr.numpy())
    turned = sparse.csr_array(given, shape=(count, rows.num_cols)).tocsc()
    starts, columns = (
        torch.from_numpy(part).to(dtype)
        for part, dtype in ((turned.indptr, torch.int64), (turned.indices, kind))
    )
    moved = None if rows.values is None else torch.from_numpy(turned.data)
    return CSRArrays(starts, columns, count, moved)


def _transpose_cpu(rows: CSRMatrix, count: int, kind: torch.dtype) -> CSRArrays:
    none = torch.empty(0)
    values = none if rows.values is None else rows.values
    starts = torch.zeros(rows.num_cols + 1, dtype=torch.int64)
    columns = torch.empty(len(rows.indices), dtype=kind)
    moved = torch.empty_like(values)
    threads = numba.config.NUMBA_NUM_THREADS
    _count(rows.indices.numpy(), starts.numpy(), threads)
    _place(
        rows.indptr.numpy(),
        rows.indices.numpy(),
        values.numpy(),
        starts.numpy(),
        columns.numpy(),
        moved.numpy(),
        threads,
    )
    return CSRArrays(starts, columns, count, None if rows.values is None else moved)


@njit(parallel=True)
def _count(columns, ends, threads):
    """Every thread counts the entries of a range of columns of its own."""
    width = len(ends) - 1
    for thread in numba.prange(threads):
        low, high = thread * width // threads, (thread + 1) * width // threads
        for entry in range(len(columns)):
            if low <= columns[entry] < high:
                ends[columns[entry] + 1] += 1
    for column in range(width):
        ends[column + 1] += ends[column]


@njit(parallel=True)
def _place(starts, columns, values, begins, rows, moved, threads):
    """Every thread places the entries of a range of columns of its own."""
    width, count = len(begins) - 1, len(starts) - 1
    for thread in numba.prange(threads):
        low, high = thread * width // threads, (thread + 1) * width // threads
        free = begins[low:high].copy()
        for row in range(count):
            for entry in range(starts[row], starts[row + 1]):
                column = columns[entry]
                if low <= column < high:
                    place = free[column - low]
                    free[column - low] = place + 1
                    rows[place] = row
                    if len(values):
                        moved[place] = values[entry]


def _transpose_cuda(rows: CSRMatrix, count: int, kind: torch.dtype) -> CSRArrays:
    order = rows.indices.sort(stable=True)[1]
    numbers = torch.arange(count, dtype=kind, device=order.device)
    row_of_entry = numbers.repeat_interleave(rows.degrees, output_size=len(order))
    starts = torch.zeros(rows.num_cols + 1, dtype=torch.int64, device=order.device)
    torch.cumsum(rows.indices.bincount(minlength=rows.num_cols), 0, out=starts[1:])
    values = None if rows.values is None else rows.values[order]
    return CSRArrays(starts, row_of_entry[order], count, values)


# Two hops: whom the neighbours of a row know and it does not, in blocks of rows.


PATHS_AT_ONCE = 2**23
"""Paths of two steps that a block of rows may have; a longer row stands alone."""
SAMPLE = 100
"""Rows that an estimate looks at."""


def two_hop(
    once: scipy.sparse.csr_array, ids: type[np.integer[Any]]
) -> tuple[Int[np.ndarray, " rows_and_one"], Int[np.ndarray, " entries"]]:
    """Starts and columns of the pattern of A A without that of A.

    Besides the answer there is one block in memory, whose size the paths bound.
    """
    parts, counts = [], [np.zeros(1, np.int64)]
    for first, last in two_hop_row_blocks(path_counts(once)):
        rows = two_hop_rows(once, once[first:last])
        counts.append(np.diff(rows.indptr))
        parts.append(rows.indices.astype(ids, copy=False))
    return np.cumsum(np.concatenate(counts), dtype=np.int64), concatenate(parts, ids)


def two_hop_rows(
    once: scipy.sparse.csr_array, near: scipy.sparse.csr_array
) -> scipy.sparse.csr_array:
    """The two-hop rows of some rows, with ascending columns."""
    far = near @ once
    far.sort_indices()
    return far > near


def concatenate(
    parts: list[Int[np.ndarray, " _"]], ids: type[np.integer[Any]]
) -> Int[np.ndarray, " entries"]:
    """The parts one after the other; each is given up when it has been copied."""
    if len(parts) == 1:
        return parts[0]
    whole = np.empty(sum(map(len, parts)), ids)
    end = 0
    parts.reverse()
    while parts:
        part = parts.pop()
        whole[end : end + len(part)] = part
        end += len(part)
    return whole


def path_counts(once: scipy.sparse.csr_array) -> Int[np.ndarray, " rows"]:
    """The paths of two steps that begin in each row."""
    return once @ np.diff(once.indptr).astype(np.int64)


def two_hop_row_blocks(paths: Int[np.ndarray, " rows"]) -> Iterator[tuple[int, int]]:
    """Runs of rows of a bounded number of paths."""
    total = np.cumsum(paths)
    first = 0
    while first < len(paths):
        before = total[first - 1] if first else 0
        fits = int(np.searchsorted(total, before + PATHS_AT_ONCE, side="right"))
        last = max(first + 1, fits)
        yield first, last
        first = last


def two_hop_nnz_bound(once: scipy.sparse.csr_array) -> int:
    """A bound on the two-hop entries: a row has at most its paths, or every column."""
    return int(np.minimum(path_counts(once), once.shape[1]).sum())


def estimate_two_hop_nnz(once: scipy.sparse.csr_array) -> int:
    """An estimate of the two-hop entries that is seldom too low.

    Rows are drawn by their bound, so that each weighs the same in the mean share of
    its bound that a row has; two standard errors are added to that share.
    """
    bound = np.minimum(path_counts(once), once.shape[1])
    total = int(bound.sum())
    if not total:
        return 0
    draw = np.random.default_rng(0)
    rows = draw.choice(len(bound), SAMPLE, p=bound / total)
    found = [two_hop_rows(once, once[row : row + 1]).nnz / bound[row] for row in rows]
    share = np.mean(found) + 2 * np.std(found) / np.sqrt(SAMPLE)
    return int(total * min(1.0, share))


# Ranges of rows with about as many edges each.


def blocks_of_nnz(starts: np.ndarray, size: int) -> list[tuple[int, int]]:
    """Ranges that cover all rows with edges, about `size` edges each."""
    aims = np.arange(0, starts[-1], size)
    firsts = np.unique(np.searchsorted(starts[1:], aims, side="right")).tolist()
    return list(pairwise([*firsts, len(starts) - 1]))


# Placing: spilled pairs become sorted rows without repeats, block by block.


def bounded_blocks(starts: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Runs of rows with at most so many entries, or of one row with more."""
    low, num_rows = 0, len(starts) - 1
    while low < num_rows:
        fits = int(np.searchsorted(starts, starts[low] + most, "right")) - 1
        high = min(num_rows, max(low + 1, fits))
        yield low, high
        low = high


def even_blocks(starts: np.ndarray, block: tuple[int, int]) -> list[tuple[int, int]]:
    """A block of rows cut so that each worker gets about as many entries."""
    low, high = block
    goals = np.linspace(starts[low], starts[high], num_threads() + 1)[1:-1]
    cuts = [low, *np.searchsorted(starts[low:high], goals) + low, high]
    return [(int(a), int(b)) for a, b in pairwise(cuts) if a < b]


def select_rows(rows: CSRMatrix, ids: Int[Tensor, " ids"]) -> CSRArrays:
    """Some rows, in the order of `ids`, on the device of the ids."""
    select = select_rows_torch if ids.is_cuda else select_rows_cpu
    return select(rows, ids)


def subgraph(
    rows: CSRMatrix, ids: Int[Tensor, " ids"], part: Int[Tensor, " ids"] | None = None
) -> CSRArrays:
    """The entries between distinct `ids`, renumbered; only inside a part, if given."""
    induce = subgraph_torch if rows.indices.is_cuda else subgraph_cpu
    return induce(rows, ids, part)
