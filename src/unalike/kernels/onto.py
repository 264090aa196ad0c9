"""Onto: sums over rows that go on from where others left them."""

from __future__ import annotations

import numba
import torch
from jaxtyping import Float
from torch import Tensor

from unalike.kernels.compiled import compiled
from unalike.kernels.rows import Rows


def gather_onto(
    rows: Rows,
    dense: Float[Tensor, "columns width"],
    total: Float[Tensor, "rows width"],
) -> None:
    """Add the dense rows that columns name to the totals, one entry after the other.

    A `gather` on processor cores sums in that order too. So ranges of columns that are
    added in turn give its very bits.
    """
    values = torch.empty(0) if rows.values is None else rows.values
    given = (total, rows.starts, rows.columns, values, dense)
    _gather_onto(*(part.detach().numpy() for part in given))


@compiled(parallel=True, fastmath={"contract"})
def _gather_onto(total, starts, columns, values, dense):
    weighted = len(values) > 0
    for row in numba.prange(len(total)):
        out = total[row]
        for entry in range(starts[row], starts[row + 1]):
            source = dense[columns[entry]]
            if weighted:
                weight = values[entry]
                for k in range(len(out)):
                    out[k] += weight * source[k]
            else:
                for k in range(len(out)):
                    out[k] += source[k]
