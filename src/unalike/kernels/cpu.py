"""The kernels on processor cores: torch's embedding bag, copied rows, fused AdamW."""

from __future__ import annotations

from collections.abc import Iterator

import numba
import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor
from torch.nn import functional as F

from unalike.kernels.compiled import ONE_AT_A_TIME, compiled, start_threads
from unalike.kernels.copying import copy_run
from unalike.kernels.rows import Rows, Taken, bounds_of
from unalike.kernels.update import BETA1, BETA2, EPSILON, Step, Weights

ENTRIES_AT_ONCE = 2**31 - 1
HALVES = (torch.bfloat16, torch.float16)

start_threads()


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


def take(rows: Rows, ids: Int[Tensor, " ids"]) -> Taken:
    """Some rows, in the order of `ids`: their starts, columns and values."""
    first, starts = bounds_of(rows.starts, ids)
    values = None if rows.values is None else _copied(rows.values, first, starts)
    return starts, _copied(rows.columns, first, starts), values


def _copied(
    part: Shaped[Tensor, " edges"],
    first: Int[Tensor, " ids"],
    starts: Int[Tensor, " ids_and_one"],
) -> Shaped[Tensor, " taken"]:
    out = part.new_empty(int(starts[-1]))
    with ONE_AT_A_TIME:
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
    with ONE_AT_A_TIME:
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
            best[row] = now[row]
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
