"""Attention on processor cores: compiled loops over rows, one head after the other."""

from __future__ import annotations

import numba
import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from unalike.kernels.attention import LEAK, Attended
from unalike.kernels.compiled import compiled
from unalike.kernels.rows import Rows

FAST = {"reassoc", "contract"}
"""Sums may be taken in another order, the same each time; NaN remains NaN."""


def attend(
    rows: Rows,
    x: Float[Tensor, "nodes heads width"],
    source: Float[Tensor, "nodes heads"],
    target: Float[Tensor, "nodes heads"],
    *,
    learning: bool,
) -> Attended:
    """What nodes gather along edges that enter them."""
    read = _arrays(x, source, target)
    out, log_sums = np.empty_like(read[0]), np.empty_like(read[1])
    lean = np.empty_like(out if learning else out[..., :0])
    _attend(_edges(rows.transposed), read, out, log_sums, lean, _leak(out))
    found, leaning = (torch.from_numpy(one).to(x.dtype) for one in (out, lean))
    return found, torch.from_numpy(log_sums), leaning


def attend_back(
    rows: Rows,
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


@compiled()
def _highest(row, head, edges, source):
    starts, columns = edges
    highest = source[row, head]
    for entry in range(starts[row], starts[row + 1]):
        highest = max(highest, source[columns[entry], head])
    return highest


@compiled(parallel=True)
def _attend(edges, read, out, log_sums, lean, leak):
    for row in numba.prange(len(out)):
        for head in range(out.shape[1]):
            _attend_head(np.int64(row), head, edges, read, out, log_sums, lean, leak)


@compiled(fastmath=FAST)
def _attend_head(row, head, edges, read, out, log_sums, lean, leak):
    (starts, columns), (x, source, target) = edges, read
    begin, last, shift = starts[row], starts[row + 1], target[row, head]
    # Bending keeps the order, so that the highest source has the highest score.
    highest = _bent(_highest(row, head, edges, source) + shift, leak)
    total, positive = x.dtype.type(0), x.dtype.type(0)
    out[row, head], lean[row, head] = 0, 0
    for entry in range(begin, last + 1):
        node = _node(columns, entry, last, row)
        if node >= 0:
            score = source[node, head] + shift
            weight = np.exp(_bent(score, leak) - highest)
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
    to_x[row, head] = 0
    for entry in range(starts[row], last + 1):
        node = _node(columns, entry, last, row)
        if node >= 0:
            score = source[row, head] + target[node, head]
            weight = np.exp(_bent(score, leak) - log_sums[node, head])
            pull = -mean[node, head]
            for k in range(x.shape[2]):
                pull += x[row, head, k] * slope[node, head, k]
                to_x[row, head, k] += weight * slope[node, head, k]
            change = weight * pull
            total += change if score > 0 else leak * change
    to_source[row, head] = total
