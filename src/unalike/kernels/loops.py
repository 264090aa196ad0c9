"""Loops: the entries of sparse rows that lie on the diagonal."""

from __future__ import annotations

import numba
import torch
from jaxtyping import Float
from torch import Tensor

from unalike.kernels.compiled import SMALL, compiled
from unalike.kernels.rows import Rows
from unalike.kernels.sorting import place_of


def loops(rows: Rows) -> Float[Tensor, " rows"]:
    """What each row holds on the diagonal; 0 where it holds nothing there."""
    small = len(rows.columns) <= SMALL
    return (_by_torch if rows.columns.is_cuda or small else _on_cores)(rows)


def _on_cores(rows: Rows) -> Float[Tensor, " rows"]:
    values = torch.empty(0) if rows.values is None else rows.values
    found = torch.zeros(len(rows.starts) - 1)
    _find(
        rows.starts.numpy(), rows.columns.numpy(), values.float().numpy(), found.numpy()
    )
    return found


@compiled(parallel=True)
def _find(starts, columns, values, found):
    for row in numba.prange(len(found)):
        place = place_of(columns, starts[row], starts[row + 1], row)
        if place >= 0:
            found[row] = values[place] if len(values) else 1


def _by_torch(rows: Rows) -> Float[Tensor, " rows"]:
    """Nothing here waits for a GPU."""
    count, entries = len(rows.starts) - 1, len(rows.columns)
    numbers = torch.arange(count, device=rows.columns.device)
    row = numbers.repeat_interleave(rows.degrees, output_size=entries)
    on = (rows.columns == row).float()
    values = on if rows.values is None else on * rows.values
    return torch.zeros(count, device=on.device).index_add_(0, row, values)
