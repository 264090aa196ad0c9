"""The kernels in plain tensor operations: slow, obviously right, the oracle."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from unalike.kernels.rows import Parts, Rows, bounds_of
from unalike.kernels.spread import Spread
from unalike.kernels.update import BETA1, BETA2, EPSILON, Step, Weights


def gather(
    rows: Rows,
    dense: Float[Tensor, "columns width"],
    offset: Float[Tensor, " width"] | None = None,
    out: Float[Tensor, "rows width"] | None = None,
) -> Float[Tensor, "rows width"]:
    """For each row the sum of the dense rows its columns name, times their values.

    The offset is added to every row. Halves are summed as float32, then rounded. The
    sums are written to `out` where it is given.
    """
    lengths = rows.starts.diff()
    row_of_entry = torch.arange(len(lengths), device=dense.device)
    picked = dense[rows.columns.long()]
    picked = picked.to(torch.promote_types(dense.dtype, torch.float32))
    if rows.values is not None:
        picked = picked * rows.values[:, None]
    total = picked.new_zeros(len(lengths), dense.shape[1])
    if offset is not None:
        total += offset
    rows_of_entries = row_of_entry.repeat_interleave(lengths)
    found = total.index_add(0, rows_of_entries, picked).to(dense.dtype)
    return found if out is None else out.copy_(found)


def propagate(
    spread: Spread,
    dense: Float[Tensor, "nodes width"],
    keep: Float[Tensor, " width"] | None = None,
    start: Float[Tensor, "nodes width"] | None = None,
    multiply: Callable[[Rows, Tensor], Tensor] = gather,
) -> Float[Tensor, "nodes width"]:
    """The product with S (A + L) S; some of each column is kept, a start is added."""
    exact = torch.promote_types(dense.dtype, torch.float32)
    scale, added = (part[:, None].to(exact) for part in (spread.scale, spread.added))
    scaled = scale * dense
    found = scale * (multiply(spread.rows, scaled) + added * scaled)
    found = found if keep is None else keep.to(exact) * found
    found = found if start is None else found + start
    return found.to(dense.dtype)


def take(rows: Rows, ids: Int[Tensor, " ids"]) -> Parts:
    """Some rows, in the order of `ids`: their starts, columns and values."""
    first, starts = bounds_of(rows.starts, ids)
    shift = (first - starts[:-1]).repeat_interleave(starts.diff())
    entries = shift + torch.arange(len(shift), device=ids.device)
    values = None if rows.values is None else rows.values[entries]
    return Parts(starts, rows.columns[entries], rows.width, values)


def adamw(
    weights: Weights, gradient: Float[Tensor, "rows runs width"], step: Step
) -> None:
    """Keep the best weights, then one step of AdamW (Loshchilov and Hutter 2019)."""
    rate, decay = step.rate[:, None], step.decay[:, None]
    kept = torch.where(step.improved[:, None], weights.now, weights.best)
    weights.best.copy_(kept)
    weights.first.mul_(BETA1).add_(gradient, alpha=1 - BETA1)
    weights.second.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
    scale1, scale2 = step.scales
    spread = (weights.second * scale2).sqrt() + EPSILON
    moved = rate * scale1 * weights.first / spread
    weights.now.mul_(1 - rate * decay).sub_(moved)
    if weights.half is not None:
        weights.half.copy_(weights.now)


def gather_adamw(
    weights: Weights,
    rows: Rows,
    gradient: Float[Tensor, "sources runs width"],
    step: Step,
) -> None:
    """A step of AdamW whose gradient is a gather of what reaches each row."""
    gathered = gather(rows, gradient.flatten(1).float())
    adamw(weights, gathered.view_as(weights.now), step)


def induced(
    rows: Rows, ids: Int[Tensor, " ids"], part: Int[Tensor, " ids"] | None = None
) -> Parts:
    """The entries between distinct `ids`, or of like parts of them, renumbered."""
    size, device = len(ids), ids.device
    place = torch.full((rows.width,), -1, dtype=torch.int64, device=device)
    place[ids] = torch.arange(size, device=device)
    lengths = rows.degrees[ids]
    row = torch.arange(size, device=device).repeat_interleave(lengths)
    shift = rows.starts[ids] - (lengths.cumsum(0) - lengths)
    entry = shift[row] + torch.arange(len(row), device=device)
    column = place[rows.columns[entry].long()]
    inside = column >= 0
    if part is not None:
        inside &= part[row] == part[column]
    row, column, entry = row[inside], column[inside], entry[inside]
    order = (row * size + column).argsort()
    starts = torch.zeros(size + 1, dtype=torch.int64, device=device)
    torch.cumsum(row.bincount(minlength=size), 0, out=starts[1:])
    values = None if rows.values is None else rows.values[entry[order]]
    return Parts(starts, column[order].to(rows.columns.dtype), size, values)
