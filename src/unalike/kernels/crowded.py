"""Crowded: sparse rows so full that a card multiplies them faster with their zeros."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.kernels.matrix_units import room_behind, rounded
from unalike.kernels.rows import Rows

SHARE = 0.08
"""Share of entries from which rows are crowded, where matrix units take the product."""
WIDE = 1024
"""Columns of the other factor from which it pays to write the zeros down."""
MOST_NUMBERS = 2**28
"""Numbers that may be written."""


def filled(
    rows: Rows, other: Float[Tensor, "columns width"]
) -> Float[Tensor, "rows columns"] | None:
    """Crowded rows with their zeros, made once; None of others.

    They are rounded as the other factor is.
    """
    if not rounded(other.dtype):
        return None
    numbers = (len(rows.starts) - 1) * rows.width
    crowded = len(rows.columns) > SHARE * numbers
    if not crowded or other.shape[1] < WIDE or numbers > MOST_NUMBERS:
        return None
    key = ("filled", other.dtype)
    if key not in rows.flows:
        rows.flows[key] = fill(rows, other.dtype)
    found: Tensor = rows.flows[key]
    return found


def fill(rows: Rows, dtype: torch.dtype) -> Float[Tensor, "rows columns"]:
    """Rows with their zeros."""
    height, device = len(rows.starts) - 1, rows.columns.device
    row = torch.arange(height, device=device).repeat_interleave(rows.degrees)
    aligned = rows.width + room_behind(rows.width)
    whole = torch.zeros(height, aligned, dtype=dtype, device=device)[:, : rows.width]
    ones = torch.ones(1, dtype=dtype, device=device)
    values = ones if rows.values is None else rows.values.to(dtype)
    whole[row, rows.columns.long()] = values
    return whole
