"""Columns: a range of them, cut out of sparse rows."""

from __future__ import annotations

import numba
import numpy as np
import torch

from unalike.kernels.compiled import compiled
from unalike.kernels.copying import copy_run
from unalike.kernels.rows import Parts, Rows


def cut_columns(rows: Rows, held: range) -> Parts:
    """The entries in a range of columns, which count from its beginning."""
    starts, columns = rows.starts.numpy(), rows.columns.numpy()
    first, begins = _find(starts, columns, held.start, held.stop)
    found = np.empty(begins[-1], columns.dtype)
    _copy(found, begins, columns, first)
    found -= found.dtype.type(held.start)
    values = None
    if rows.values is not None:
        kept = np.empty(begins[-1], np.float32)
        _copy(kept, begins, rows.values.float().numpy(), first)
        values = torch.from_numpy(kept)
    cut = torch.from_numpy(begins), torch.from_numpy(found)
    return Parts(*cut, len(held), values)


@compiled(parallel=True)
def _find(starts, columns, low, high):
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


@compiled(parallel=True)
def _copy(out, begins, part, first):
    for row in numba.prange(len(first)):
        begin = begins[row]
        copy_run(out, begin, part, first[row], begins[row + 1] - begin)
