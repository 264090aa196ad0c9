"""CPU kernels: SpMM (embedding_bag), numba propagation, attention, AdamW, bias + ReLU."""

from __future__ import annotations

from collections.abc import Iterator

import numba
import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from unalike.data.csr import CSRMatrix
from unalike.data.numba_utils import njit
from unalike.nn.attention import NEGATIVE_SLOPE, AttentionOutput
from unalike.nn.optim import ADAM_EPS, BETA1, BETA2, AdamWState, AdamWStep
from unalike.nn.sparse import NormalizedCSR

# Attention on processor cores: compiled loops over rows, one head after the other.


FAST = {"reassoc", "contract"}
"""Sums may be taken in another order, the same each time; NaN remains NaN."""


def gat_forward(
    rows: CSRMatrix,
    x: Float[Tensor, "nodes heads width"],
    source: Float[Tensor, "nodes heads"],
    target: Float[Tensor, "nodes heads"],
    *,
    learning: bool,
) -> AttentionOutput:
    """What nodes gather along edges that enter them."""
    read = _arrays(x, source, target)
    out, log_sums = np.empty_like(read[0]), np.empty_like(read[1])
    lean = np.empty_like(out if learning else out[..., :0])
    _attend(_edges(rows.T), read, out, log_sums, lean, _leak(out))
    found, leaning = (torch.from_numpy(one).to(x.dtype) for one in (out, lean))
    return found, torch.from_numpy(log_sums), leaning


def gat_backward(
    rows: CSRMatrix,
    x: Float[Tensor, "nodes heads width"],
    source: Float[Tensor, "nodes heads"],
    target: Float[Tensor, "nodes heads"],
    out: Float[Tensor, "nodes heads width"],
    log_sums: Float[Tensor, "nodes heads"],
    lean: Float[Tensor, "nodes heads width"],
    slope: Float[Tensor, "nodes heads width"],
) -> tuple[
    Float[Tensor, "nodes heads width"],
    Float[Tensor, "nodes heads"],
    Float[Tensor, "nodes heads"],
]:
    """The slopes of x, source and target, from that of what was gathered."""
    exact = slope.to(log_sums.dtype)
    mean, to_target = (exact * out).sum(2), (exact * lean).sum(2)
    read = _arrays(x, source, target, log_sums, slope, mean)
    to_x, to_source = np.empty_like(read[0]), np.empty_like(read[1])
    _to_source(_edges(rows), read, to_x, to_source, _leak(to_x))
    return (
        torch.from_numpy(to_x).to(x.dtype),
        torch.from_numpy(to_source).to(source.dtype),
        to_target.to(target.dtype),
    )


def _arrays(*tensors: Tensor) -> tuple[np.ndarray, ...]:
    """Contiguous arrays of the first one's kind, halves as float32."""
    kind = torch.promote_types(tensors[0].dtype, torch.float32)
    return tuple(tensor.detach().to(kind).contiguous().numpy() for tensor in tensors)


def _edges(rows: CSRMatrix) -> tuple[np.ndarray, np.ndarray]:
    return rows.indptr.numpy(), rows.indices.numpy()


def _leak(like: np.ndarray) -> np.floating:
    """In the precision of the loops, which would else go on in a higher one."""
    return like.dtype.type(NEGATIVE_SLOPE)


@njit()
def _leaky_relu(score, leak):
    return score if score > 0 else leak * score


@njit()
def _node(columns, entry, last, row):
    """The node an entry names, -1 for a loop; after the last one comes the row itself.

    So every row has one loop, whether or not it had one before.
    """
    if entry == last:
        return row
    node = np.int64(columns[entry])
    return node if node != row else np.int64(-1)


@njit()
def _highest(row, head, edges, source):
    starts, columns = edges
    highest = source[row, head]
    for entry in range(starts[row], starts[row + 1]):
        highest = max(highest, source[columns[entry], head])
    return highest


@njit(parallel=True)
def _attend(edges, read, out, log_sums, lean, leak):
    for row in numba.prange(len(out)):
        for head in range(out.shape[1]):
            _attend_head(np.int64(row), head, edges, read, out, log_sums, lean, leak)


@njit(fastmath=FAST)
def _attend_head(row, head, edges, read, out, log_sums, lean, leak):
    (starts, columns), (x, source, target) = edges, read
    begin, last, shift = starts[row], starts[row + 1], target[row, head]
    # Bending keeps the order, so that the highest source has the highest score.
    highest = _leaky_relu(_highest(row, head, edges, source) + shift, leak)
    total, positive = x.dtype.type(0), x.dtype.type(0)
    out[row, head], lean[row, head] = 0, 0
    for entry in range(begin, last + 1):
        node = _node(columns, entry, last, row)
        if node >= 0:
            score = source[node, head] + shift
            weight = np.exp(_leaky_relu(score, leak) - highest)
            total += weight
            for k in range(x.shape[2]):
                out[row, head, k] += weight * x[node, head, k]
            if score > 0:
                positive += weight
                for k in range(lean.shape[2]):
                    lean[row, head, k] += weight * x[node, head, k]
    for k in range(x.shape[2]):
        out[row, head, k] /= total
    steep = (1 - leak) / total
    for k in range(lean.shape[2]):
        lean[row, head, k] = steep * (lean[row, head, k] - positive * out[row, head, k])
    log_sums[row, head] = highest + np.log(total)


@njit(parallel=True)
def _to_source(edges, read, to_x, to_source, leak):
    for row in numba.prange(len(to_source)):
        for head in range(to_source.shape[1]):
            _to_source_head(np.int64(row), head, edges, read, to_x, to_source, leak)


@njit(fastmath=FAST)
def _to_source_head(row, head, edges, read, to_x, to_source, leak):
    (starts, columns), (x, source, target, log_sums, slope, mean) = edges, read
    last = starts[row + 1]
    total = x.dtype.type(0)
    to_x[row, head] = 0
    for entry in range(starts[row], last + 1):
        node = _node(columns, entry, last, row)
        if node >= 0:
            score = source[row, head] + target[node, head]
            weight = np.exp(_leaky_relu(score, leak) - log_sums[node, head])
            pull = -mean[node, head]
            for k in range(x.shape[2]):
                pull += x[row, head, k] * slope[node, head, k]
                to_x[row, head, k] += weight * slope[node, head, k]
            change = weight * pull
            total += change if score > 0 else leak * change
    to_source[row, head] = total


# The kernels on processor cores: torch's embedding bag, and compiled loops.


ENTRIES_AT_ONCE = 2**31 - 1
HALF_DTYPES = (torch.bfloat16, torch.float16)


def spmm(
    rows: CSRMatrix,
    dense: Float[Tensor, "columns width"],
    offset: Float[Tensor, " width"] | None = None,
    out: Float[Tensor, "rows width"] | None = None,
) -> Float[Tensor, "rows width"]:
    """For each row the sum of the dense rows its columns name, times their values."""
    total = _sums(rows, dense.float() if dense.dtype in HALF_DTYPES else dense)
    shifted = total if offset is None else total.add_(offset)
    found = shifted.to(dense.dtype)
    return found if out is None else out.copy_(found)


def _sums(
    rows: CSRMatrix, dense: Float[Tensor, "columns width"]
) -> Float[Tensor, "rows width"]:
    starts, columns, values = rows.indptr, rows.indices, rows.values
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
        for first, last, bounds in _spmm_row_blocks(starts)
    ]
    return sums[0] if len(sums) == 1 else torch.cat(sums)


def _spmm_row_blocks(
    starts: Int[Tensor, " rows_and_one"],
) -> Iterator[tuple[int, int, Tensor]]:
    """Runs of rows whose entries 32-bit offsets can count."""
    row = 0
    while row < len(starts) - 1:
        first = int(starts[row])
        fits = torch.searchsorted(starts, first + ENTRIES_AT_ONCE, right=True)
        end = max(row + 1, int(fits) - 1)
        yield first, int(starts[end]), starts[row : end + 1] - first
        row = end


def normalized_spmm(
    spread: NormalizedCSR,
    dense: Float[Tensor, "nodes width"],
    keep: Float[Tensor, " width"] | None = None,
    start: Float[Tensor, "nodes width"] | None = None,
) -> Float[Tensor, "nodes width"]:
    """A gather along scaled entries, its loops and its start in one pass."""
    exact = torch.promote_types(dense.dtype, torch.float32)
    rows, none = spread.csr, dense.new_empty(0, dtype=exact)
    values = none if rows.values is None else rows.values
    begun = none.view(0, 0) if start is None else start
    kept = none if keep is None else keep
    given = (values, spread.scale, spread.self_loop_weight, dense, kept, begun)
    out = torch.empty(dense.shape, dtype=exact)
    read = (part.detach().to(exact).contiguous().numpy() for part in given)
    _propagate(out.numpy(), rows.indptr.numpy(), rows.indices.numpy(), *read)
    return out.to(dense.dtype)


@njit(parallel=True, fastmath={"contract"})
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


@njit(fastmath={"contract"})
def _blend(total, keep, start, row):
    kept, begun = len(keep) > 0, len(start) > 0
    for k in range(len(total)):
        if kept:
            total[k] *= keep[k]
        if begun:
            total[k] += start[row, k]


def adamw(
    weights: AdamWState, gradient: Float[Tensor, "rows runs width"], step: AdamWStep
) -> None:
    """Keep the best weights, then one step of AdamW, in one pass over memory."""
    rows, runs, width = weights.weight.shape
    parts = (
        weights.weight,
        weights.exp_avg,
        weights.exp_avg_sq,
        weights.best_weight,
        gradient,
    )
    now, first, second, best, slope = (
        part.reshape(rows * runs, width).numpy() for part in parts
    )
    settings = (step.lr, step.weight_decay, step.improved)
    _adamw(
        now,
        first,
        second,
        best,
        slope,
        *(setting.numpy() for setting in settings),
        *step.bias_corrections.numpy(),
    )
    if weights.weight_bf16 is not None:
        weights.weight_bf16.copy_(weights.weight)


@njit(parallel=True, fastmath=True)
def _adamw(now, first, second, best, gradient, rate, decay, improved, scale1, scale2):
    runs = len(rate)
    keep1, keep2 = np.float32(BETA1), np.float32(BETA2)
    take1, take2 = np.float32(1 - BETA1), np.float32(1 - BETA2)
    epsilon, one = np.float32(ADAM_EPS), np.float32(1)
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


def spmm_adamw(
    weights: AdamWState,
    rows: CSRMatrix,
    gradient: Float[Tensor, "sources runs width"],
    step: AdamWStep,
) -> None:
    """A step of AdamW whose gradient is a gather of what reaches each row."""
    gathered = spmm(rows, gradient.flatten(1).float())
    adamw(weights, gathered.view_as(weights.weight), step)


# Onto: sums over rows that go on from where others left them.


def spmm_accumulate_(
    rows: CSRMatrix,
    dense: Float[Tensor, "columns width"],
    total: Float[Tensor, "rows width"],
) -> None:
    """Add the dense rows that columns name to the totals, one entry after the other.

    A `gather` on processor cores sums in that order too. So ranges of columns that are
    added in turn give its very bits.
    """
    values = torch.empty(0) if rows.values is None else rows.values
    given = (total, rows.indptr, rows.indices, values, dense)
    _gather_onto(*(part.detach().numpy() for part in given))


@njit(parallel=True, fastmath={"contract"})
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


# Sums that are cut at 0, on processor cores.


Sums = Float[Tensor, "*runs nodes width"]


def bias_relu_(total: Sums, offset: Float[Tensor, "*runs width"]) -> Sums:
    """relu of sums and an offset, in place."""
    return total.add_(offset.unsqueeze(-2)).relu_()


def bias_relu_backward(
    slope: Sums, total: Sums
) -> tuple[Sums, Float[Tensor, "*runs width"]]:
    """The slopes of the sums, and of the offset."""
    cut = torch.ops.aten.threshold_backward(slope, total, 0)
    return cut, cut.sum(-2)
