"""Attention on processor cores: compiled loops over rows, one head after the other."""

from __future__ import annotations

import numba
import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from unalike.kernels.attention import LEAK
from unalike.kernels.compiled import compiled
from unalike.kernels.rows import Rows

FAST = {"reassoc", "contract"}
"""Sums may be taken in another order, the same each time; NaN remains NaN."""


def attend(
    rows: Rows,
    x: Float[Tensor, "nodes heads width"],
    source: Float[Tensor, "nodes heads"],
    target: Float[Tensor, "nodes heads"],
) -> tuple[Float[Tensor, "nodes heads width"], Float[Tensor, "nodes heads"]]:
    """What nodes gather along edges that enter them, and the logs of weights' sums."""
    read = _arrays(x, source, target)
    out, log_sums = np.empty_like(read[0]), np.empty_like(read[1])
    _attend(_edges(rows.transposed), read, out, log_sums, _leak(out))
    return torch.from_numpy(out).to(x.dtype), torch.from_numpy(log_sums)


def attend_back(
    rows: Rows,
    x: Float[Tensor, "nodes heads width"],
    source: Float[Tensor, "nodes heads"],
    target: Float[Tensor, "nodes heads"],
    out: Float[Tensor, "nodes heads width"],
    log_sums: Float[Tensor, "nodes heads"],
    slope: Float[Tensor, "nodes heads width"],
) -> tuple[
    Float[Tensor, "nodes heads width"],
    Float[Tensor, "nodes heads"],
    Float[Tensor, "nodes heads"],
]:
    """The slopes of x, source and target, from that of what was gathered."""
    mean = (slope.to(log_sums.dtype) * out).sum(2)
    read = _arrays(x, source, target, log_sums, slope, mean)
    to_x, to_source = np.empty_like(read[0]), np.empty_like(read[1])
    to_target, leak = np.empty_like(read[2]), _leak(to_x)
    _to_target(_edges(rows.transposed), read, to_target, leak)
    _to_source(_edges(rows), read, to_x, to_source, leak)
    return (
        torch.from_numpy(to_x).to(x.dtype),
        torch.from_numpy(to_source).to(source.dtype),
        torch.from_numpy(to_target).to(target.dtype),
    )


def _arrays(*tensors: Tensor) -> tuple[np.ndarray, ...]:
    """Contiguous arrays of the first one's kind, halves as float32."""
    kind = torch.promote_types(tensors[0].dtype, torch.float32)
    return tuple(tensor.detach().to(kind).contiguous().numpy() for tensor in tensors)


def _edges(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    return rows.starts.numpy(), rows.columns.numpy()


def _leak(like: np.ndarray) -> np.floating:
    """In the precision of the loops, which would else go on in a higher one."""
    return like.dtype.type(LEAK)


@compiled()
def _bent(score, leak):
    return score if score > 0 else leak * score


@compiled()
def _node(columns, entry, last, row):
    """The node an entry names, -1 for a loop; after the last one comes the row itself.

    So every row has one loop, whether or not it had one before.
    """
    if entry == last:
        return row
    node = np.int64(columns[entry])
    return node if node != row else np.int64(-1)


@compiled(fastmath=FAST)
def _change(score, weight, x, at, slope, by, head, mean, leak):
    """The slope of the score that node `by` gives to node `at`."""
    pull = x.dtype.type(0)
    for k in range(x.shape[2]):
        pull += x[at, head, k] * slope[by, head, k]
    change = weight * (pull - mean[by, head])
    return change if score > 0 else leak * change


@compiled(parallel=True)
def _attend(edges, read, out, log_sums, leak):
    for row in numba.prange(len(out)):
        for head in range(out.shape[1]):
            _attend_head(np.int64(row), head, edges, read, out, log_sums, leak)


@compiled(fastmath=FAST)
def _attend_head(row, head, edges, read, out, log_sums, leak):
    (starts, columns), (x, source, target) = edges, read
    begin, last = starts[row], starts[row + 1]
    highest, shift = source[row, head], target[row, head]
    for entry in range(begin, last):
        highest = max(highest, source[columns[entry], head])
    # Bending keeps the order, so that the highest source has the highest score.
    highest = _bent(highest + shift, leak)
    total = x.dtype.type(0)
    for k in range(x.shape[2]):
        out[row, head, k] = 0
    for entry in range(begin, last + 1):
        node = _node(columns, entry, last, row)
        if node >= 0:
            weight = np.exp(_bent(source[node, head] + shift, leak) - highest)
            total += weight
            for k in range(x.shape[2]):
                out[row, head, k] += weight * x[node, head, k]
    for k in range(x.shape[2]):
        out[row, head, k] /= total
    log_sums[row, head] = highest + np.log(total)


@compiled(parallel=True)
def _to_target(edges, read, to_target, leak):
    for row in numba.prange(len(to_target)):
        for head in range(to_target.shape[1]):
            _to_target_head(np.int64(row), head, edges, read, to_target, leak)


@compiled(fastmath=FAST)
def _to_target_head(row, head, edges, read, to_target, leak):
    (starts, columns), (x, source, target, log_sums, slope, mean) = edges, read
    last = starts[row + 1]
    total = x.dtype.type(0)
    for entry in range(starts[row], last + 1):
        node = _node(columns, entry, last, row)
        if node >= 0:
            score = source[node, head] + target[row, head]
            weight = np.exp(_bent(score, leak) - log_sums[row, head])
            total += _change(score, weight, x, node, slope, row, head, mean, leak)
    to_target[row, head] = total


@compiled(parallel=True)
def _to_source(edges, read, to_x, to_source, leak):
    for row in numba.prange(len(to_source)):
        for head in range(to_source.shape[1]):
            _to_source_head(np.int64(row), head, edges, read, to_x, to_source, leak)


@compiled(fastmath=FAST)
def _to_source_head(row, head, edges, read, to_x, to_source, leak):
    (starts, columns), (x, source, target, log_sums, slope, mean) = edges, read
    last = starts[row + 1]
    total = x.dtype.type(0)
    for k in range(x.shape[2]):
        to_x[row, head, k] = 0
    for entry in range(starts[row], last + 1):
        node = _node(columns, entry, last, row)
        if node >= 0:
            score = source[row, head] + target[node, head]
            weight = np.exp(_bent(score, leak) - log_sums[node, head])
            total += _change(score, weight, x, row, slope, node, head, mean, leak)
            for k in range(x.shape[2]):
                to_x[row, head, k] += weight * slope[node, head, k]
    to_source[row, head] = total
