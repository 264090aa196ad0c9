"""Transposition: the entries of sparse rows by their columns, with nothing compared."""

from __future__ import annotations

import numba
import torch
from scipy import sparse

from unalike.kernels.compiled import SMALL, compiled
from unalike.kernels.rows import Parts, Rows


def transpose(rows: Rows) -> Parts:
    """The same entries with rows and columns exchanged.

    Entries of a column remain in the order of their rows.
    """
    count = len(rows.starts) - 1
    kind = torch.int32 if count <= torch.iinfo(torch.int32).max else torch.int64
    if rows.columns.is_cuda:
        return _on_card(rows, count, kind)
    small = len(rows.columns) <= SMALL
    return (_by_scipy if small else _on_cores)(rows, count, kind)


def _by_scipy(rows: Rows, count: int, kind: torch.dtype) -> Parts:
    values = torch.empty_like(rows.columns) if rows.values is None else rows.values
    given = (values.numpy(), rows.columns.numpy(), rows.starts.numpy())
    turned = sparse.csr_array(given, shape=(count, rows.width)).tocsc()
    starts, columns = (
        torch.from_numpy(part).to(dtype)
        for part, dtype in ((turned.indptr, torch.int64), (turned.indices, kind))
    )
    moved = None if rows.values is None else torch.from_numpy(turned.data)
    return Parts(starts, columns, count, moved)


def _on_cores(rows: Rows, count: int, kind: torch.dtype) -> Parts:
    none = torch.empty(0)
    values = none if rows.values is None else rows.values
    starts = torch.zeros(rows.width + 1, dtype=torch.int64)
    columns = torch.empty(len(rows.columns), dtype=kind)
    moved = torch.empty_like(values)
    threads = numba.config.NUMBA_NUM_THREADS
    _count(rows.columns.numpy(), starts.numpy(), threads)
    _place(
        rows.starts.numpy(),
        rows.columns.numpy(),
        values.numpy(),
        starts.numpy(),
        columns.numpy(),
        moved.numpy(),
        threads,
    )
    return Parts(starts, columns, count, None if rows.values is None else moved)


@compiled(parallel=True)
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


@compiled(parallel=True)
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


def _on_card(rows: Rows, count: int, kind: torch.dtype) -> Parts:
    order = rows.columns.sort(stable=True)[1]
    numbers = torch.arange(count, dtype=kind, device=order.device)
    row_of_entry = numbers.repeat_interleave(rows.degrees, output_size=len(order))
    starts = torch.zeros(rows.width + 1, dtype=torch.int64, device=order.device)
    torch.cumsum(rows.columns.bincount(minlength=rows.width), 0, out=starts[1:])
    values = None if rows.values is None else rows.values[order]
    return Parts(starts, row_of_entry[order], count, values)
