"""Crowded: sparse rows so full that a card multiplies them faster with their zeros."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.kernels.matrix_units import room_behind, rounded
from unalike.kernels.rows import Rows
from unalike.memory import free_memory

SHARE = 0.08
"""Share of entries from which rows are crowded, where matrix units take the product."""
WIDE = 1024
"""Columns of the other factor from which it pays to write the zeros down."""
FLOWING = 64
"""The same where nothing but the product is wanted, no step along it."""
MOST_OF_MEMORY = 0.2
"""Share of what is free that the zeros may take."""


def filled(
    rows: Rows, other: Float[Tensor, "columns width"], least: int = WIDE
) -> Float[Tensor, "rows columns"] | None:
    """Crowded rows with their zeros, made once; None of others.

    They are rounded as the other factor is.
    """
    numbers = (len(rows.starts) - 1) * rows.width
    crowded = len(rows.columns) > SHARE * numbers
    if not crowded or other.shape[1] < least or not rounded(other.dtype):
        return None
    key = ("filled", other.dtype)
    if key not in rows.flows:
        rows.flows[key] = fill(rows, other.dtype)
    found: Tensor | None = rows.flows[key]
    return found


def fill(rows: Rows, dtype: torch.dtype) -> Float[Tensor, "rows columns"] | None:
    """Rows with their zeros, where there is room for them."""
    height, device = len(rows.starts) - 1, rows.columns.device
    if height * rows.width * dtype.itemsize > MOST_OF_MEMORY * free_memory(device):
        return None
    row = torch.arange(height, device=device).repeat_interleave(rows.degrees)
    aligned = rows.width + room_behind(rows.width)
    whole = torch.zeros(height, aligned, dtype=dtype, device=device)[:, : rows.width]
    ones = torch.ones(1, dtype=dtype, device=device)
    values = ones if rows.values is None else rows.values.to(dtype)
    whole[row, rows.columns.long()] = values
    return whole
