"""Loops: the entries of sparse rows that lie on the diagonal."""

from __future__ import annotations

import numba
import torch
from jaxtyping import Float
from torch import Tensor

from unalike.kernels.compiled import compiled
from unalike.kernels.rows import Rows


def loops(rows: Rows) -> Float[Tensor, " rows"]:
    """What each row holds on the diagonal; 0 where it holds nothing there."""
    return (_on_card if rows.columns.is_cuda else _on_cores)(rows)


def _on_cores(rows: Rows) -> Float[Tensor, " rows"]:
    values = torch.empty(0) if rows.values is None else rows.values
    found = torch.zeros(len(rows.starts) - 1)
    _find(
        rows.starts.numpy(), rows.columns.numpy(), values.float().numpy(), found.numpy()
    )
    return found


@compiled(parallel=True)
def _find(starts, columns, values, found):
    """Columns ascend, so that a few of a row tell."""
    for row in numba.prange(len(found)):
        low, high = starts[row], starts[row + 1]
        while low < high:
            middle = (low + high) // 2
            if columns[middle] < row:
                low = middle + 1
            else:
                high = middle
        if low < starts[row + 1] and columns[low] == row:
            found[row] = values[low] if len(values) else 1


def _on_card(rows: Rows) -> Float[Tensor, " rows"]:
    """Nothing here waits for the card."""
    count, entries = len(rows.starts) - 1, len(rows.columns)
    numbers = torch.arange(count, device=rows.columns.device)
    row = numbers.repeat_interleave(rows.degrees, output_size=entries)
    on = (rows.columns == row).float()
    values = on if rows.values is None else on * rows.values
    return torch.zeros(count, device=on.device).index_add_(0, row, values)
