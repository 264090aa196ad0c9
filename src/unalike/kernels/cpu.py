"""The kernels on processor cores: torch's embedding bag, and compiled loops."""

from __future__ import annotations

from collections.abc import Iterator

import numba
import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor
from torch.nn import functional as F

from unalike.kernels.compiled import SMALL, compiled
from unalike.kernels.copying import copy_run
from unalike.kernels.rows import Parts, Rows, bounds_of
from unalike.kernels.sorting import sort_run
from unalike.kernels.spread import Spread
from unalike.kernels.update import BETA1, BETA2, EPSILON, Step, Weights

ENTRIES_AT_ONCE = 2**31 - 1
HALVES = (torch.bfloat16, torch.float16)


def gather(
    rows: Rows,
    dense: Float[Tensor, "columns width"],
    offset: Float[Tensor, " width"] | None = None,
    out: Float[Tensor, "rows width"] | None = None,
) -> Float[Tensor, "rows width"]:
    """For each row the sum of the dense rows its columns name, times their values."""
    total = _sums(rows, dense.float() if dense.dtype in HALVES else dense)
    shifted = total if offset is None else total.add_(offset)
    found = shifted.to(dense.dtype)
    return found if out is None else out.copy_(found)


def _sums(
    rows: Rows, dense: Float[Tensor, "columns width"]
) -> Float[Tensor, "rows width"]:
    starts, columns, values = rows.starts, rows.columns, rows.values
    if not len(columns) or not dense.shape[1]:
        return dense.new_zeros(len(starts) - 1, dense.shape[1])
    if values is not None:
        values = values.to(dense.dtype)
    sums = [
        F.embedding_bag(
            columns[first:last],
            dense,
            bounds.to(columns.dtype),
            mode="sum",
            per_sample_weights=None if values is None else values[first:last],
            include_last_offset=True,
        )
        for first, last, bounds in _pieces(starts)
    ]
    return sums[0] if len(sums) == 1 else torch.cat(sums)


def _pieces(starts: Int[Tensor, " rows_and_one"]) -> Iterator[tuple[int, int, Tensor]]:
    """Runs of rows whose entries 32-bit offsets can count."""
    row = 0
    while row < len(starts) - 1:
        first = int(starts[row])
        fits = torch.searchsorted(starts, first + ENTRIES_AT_ONCE, right=True)
        end = max(row + 1, int(fits) - 1)
        yield first, int(starts[end]), starts[row : end + 1] - first
        row = end


def propagate(
    spread: Spread,
    dense: Float[Tensor, "nodes width"],
    keep: Float[Tensor, " width"] | None = None,
    start: Float[Tensor, "nodes width"] | None = None,
) -> Float[Tensor, "nodes width"]:
    """A gather along scaled entries, its loops and its start in one pass."""
    exact = torch.promote_types(dense.dtype, torch.float32)
    rows, none = spread.rows, dense.new_empty(0, dtype=exact)
    values = none if rows.values is None else rows.values
    begun = none.view(0, 0) if start is None else start
    kept = none if keep is None else keep
    given = (values, spread.scale, spread.added, dense, kept, begun)
    out = torch.empty(dense.shape, dtype=exact)
    read = (part.detach().to(exact).contiguous().numpy() for part in given)
    _propagate(out.numpy(), rows.starts.numpy(), rows.columns.numpy(), *read)
    return out.to(dense.dtype)


@compiled(parallel=True, fastmath={"contract"})
def _propagate(out, starts, columns, values, scale, added, dense, keep, start):
    weighted = len(values) > 0
    for row in numba.prange(len(out)):
        total, own = out[row], scale[row]
        loop = own * scale[row] * added[row]
        source = dense[row]
        for k in range(out.shape[1]):
            total[k] = loop * source[k]
        for entry in range(starts[row], starts[row + 1]):
            column = columns[entry]
            weight = own * scale[column]
            if weighted:
                weight *= values[entry]
            source = dense[column]
            for k in range(out.shape[1]):
                total[k] += weight * source[k]
        # One type, whatever numba makes of the row, so that it is compiled once.
        _blend(total, keep, start, np.int64(row))


@compiled(fastmath={"contract"})
def _blend(total, keep, start, row):
    kept, begun = len(keep) > 0, len(start) > 0
    for k in range(len(total)):
        if kept:
            total[k] *= keep[k]
        if begun:
            total[k] += start[row, k]


def take(rows: Rows, ids: Int[Tensor, " ids"]) -> Parts:
    """Some rows, in the order of `ids`: their starts, columns and values."""
    first, starts = bounds_of(rows.starts, ids)
    values = None if rows.values is None else _copied(rows.values, first, starts)
    columns = _copied(rows.columns, first, starts)
    return Parts(starts, columns, rows.width, values)


def _copied(
    part: Shaped[Tensor, " edges"],
    first: Int[Tensor, " ids"],
    starts: Int[Tensor, " ids_and_one"],
) -> Shaped[Tensor, " taken"]:
    total = int(starts[-1])
    if total <= SMALL:
        shift = (first - starts[:-1]).repeat_interleave(starts.diff())
        return part[shift + torch.arange(total)]
    out = part.new_empty(total)
    _copy(part.detach().numpy(), first.numpy(), starts.numpy(), out.numpy())
    return out


@compiled(parallel=True)
def _copy(part, first, starts, out):
    for row in numba.prange(len(first)):
        begin = starts[row]
        copy_run(out, begin, part, first[row], starts[row + 1] - begin)


def adamw(
    weights: Weights, gradient: Float[Tensor, "rows runs width"], step: Step
) -> None:
    """Keep the best weights, then one step of AdamW, in one pass over memory."""
    rows, runs, width = weights.now.shape
    parts = (weights.now, weights.first, weights.second, weights.best, gradient)
    now, first, second, best, slope = (
        part.reshape(rows * runs, width).numpy() for part in parts
    )
    settings = (step.rate, step.decay, step.improved)
    _adamw(
        now,
        first,
        second,
        best,
        slope,
        *(setting.numpy() for setting in settings),
        *step.scales.numpy(),
    )
    if weights.half is not None:
        weights.half.copy_(weights.now)


@compiled(parallel=True, fastmath=True)
def _adamw(now, first, second, best, gradient, rate, decay, improved, scale1, scale2):
    runs = len(rate)
    keep1, keep2 = np.float32(BETA1), np.float32(BETA2)
    take1, take2 = np.float32(1 - BETA1), np.float32(1 - BETA2)
    epsilon, one = np.float32(EPSILON), np.float32(1)
    for row in numba.prange(len(now)):
        run = row % runs
        shrink = one - rate[run] * decay[run]
        pace = rate[run] * scale1
        if improved[run]:
            for k in range(now.shape[1]):
                best[row, k] = now[row, k]
        for k in range(now.shape[1]):
            slope = gradient[row, k]
            mean = keep1 * first[row, k] + take1 * slope
            square = keep2 * second[row, k] + take2 * slope * slope
            first[row, k] = mean
            second[row, k] = square
            spread = np.sqrt(square * scale2) + epsilon
            now[row, k] = shrink * now[row, k] - pace * mean / spread


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
    columns, chosen, size = rows.columns.numpy(), ids.numpy(), len(ids)
    place = np.full(rows.width, -1, columns.dtype)
    place[chosen] = np.arange(size, dtype=columns.dtype)
    weights = np.empty(0, np.float32) if rows.values is None else rows.values.numpy()
    bounds = (rows.starts[ids].numpy(), rows.starts[ids + 1].numpy())
    apart = np.empty(0, np.int64) if part is None else part.numpy()
    starts, found, kept = _cut(*bounds, columns, weights, place, apart)
    if (chosen[1:] < chosen[:-1]).any():
        _sort(starts, found, kept)
    values = None if rows.values is None else torch.from_numpy(kept)
    return Parts(torch.from_numpy(starts), torch.from_numpy(found), size, values)


@compiled()
def _cut(first, last, columns, weights, place, part):
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


@compiled()
def _sort(starts, columns, weights):
    for row in range(len(starts) - 1):
        sort_run(columns, weights, starts[row], starts[row + 1])
