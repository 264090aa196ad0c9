"""CPU kernels: SpMM by embedding_bag, numba loops for propagation, GAT and AdamW."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from unalike.data.csr import CSRMatrix, row_blocks
from unalike.data.numba_utils import njit
from unalike.nn.attention import (
    DEFAULT_ATTENTION,
    AttentionOptions,
    AttentionOutput,
)
from unalike.nn.optim import ADAM_EPS, BETA1, BETA2, AdamWState, AdamWStep
from unalike.nn.sparse import Dense, NormalizedCSR, Vector

FASTMATH = {"reassoc", "contract"}
"""Sums may be reordered, the same way each time; NaN remains NaN."""
MAX_NNZ_PER_CALL = 2**31 - 1
HALF_DTYPES = (torch.bfloat16, torch.float16)
Sums = Float[Tensor, "*runs nodes width"]


def spmm(
    rows: CSRMatrix, dense: Dense, bias: Vector | None = None, out: Dense | None = None
) -> Dense:
    """The product of a CSR matrix and a dense one, plus a bias."""
    total = _embedding_bags(
        rows, dense.float() if dense.dtype in HALF_DTYPES else dense
    )
    result = (total if bias is None else total.add_(bias)).to(dense.dtype)
    return result if out is None else out.copy_(result)


def _embedding_bags(rows: CSRMatrix, dense: Dense) -> Dense:
    indptr, indices, values = rows.indptr, rows.indices, rows.values
    if not len(indices) or not dense.shape[1]:
        return dense.new_zeros(len(indptr) - 1, dense.shape[1])
    if values is not None:
        values = values.to(dense.dtype)
    if len(indices) <= MAX_NNZ_PER_CALL:
        return _embedding_bag(indptr, indices, values, dense)
    blocks = []
    for low, high in row_blocks(indptr.numpy(), MAX_NNZ_PER_CALL):
        bounds = indptr[low : high + 1]
        part = slice(int(bounds[0]), int(bounds[-1]))
        weights = None if values is None else values[part]
        blocks.append(_embedding_bag(bounds - bounds[0], indices[part], weights, dense))
    return torch.cat(blocks)


def _embedding_bag(
    indptr: Tensor, indices: Tensor, values: Tensor | None, dense: Dense
) -> Dense:
    """The weighted sums of rows of a dense matrix."""
    return F.embedding_bag(
        indices,
        dense,
        indptr.to(indices.dtype),
        mode="sum",
        per_sample_weights=values,
        include_last_offset=True,
    )


def spmm_accumulate_(rows: CSRMatrix, dense: Dense, total: Dense) -> None:
    """Add the product with a dense matrix to `total`, one entry after the other.

    `spmm` sums in that order too, so ranges of columns that are added one after the
    other give its very bits.
    """
    values = torch.empty(0) if rows.values is None else rows.values
    arrays = (total, rows.indptr, rows.indices, values, dense)
    _spmm_accumulate(*(array.detach().numpy() for array in arrays))


@njit(parallel=True, fastmath={"contract"})
def _spmm_accumulate(total, indptr, indices, values, dense):
    has_values = len(values) > 0
    for row in numba.prange(len(total)):
        out = total[row]
        for entry in range(indptr[row], indptr[row + 1]):
            source = dense[indices[entry]]
            if has_values:
                weight = values[entry]
                for k in range(len(out)):
                    out[k] += weight * source[k]
            else:
                for k in range(len(out)):
                    out[k] += source[k]


def sddmm(
    rows: CSRMatrix,
    x: Float[Tensor, "rows width"],
    y: Float[Tensor, "columns width"],
) -> Float[Tensor, " nnz"]:
    """The inner product of a row of x and a row of y for each entry."""
    left, right = as_arrays(x, y)
    out = np.empty(len(rows.indices), left.dtype)
    _sddmm(*csr_arrays(rows), left, right, out)
    return torch.from_numpy(out)


@njit(parallel=True, fastmath=FASTMATH)
def _sddmm(indptr, indices, x, y, out):
    for row in numba.prange(len(x)):
        for entry in range(indptr[row], indptr[row + 1]):
            source, total = y[indices[entry]], x.dtype.type(0)
            for k in range(x.shape[1]):
                total += x[row, k] * source[k]
            out[entry] = total


def normalized_spmm(
    adjacency: NormalizedCSR,
    dense: Dense,
    column_scale: Vector | None = None,
    residual: Dense | None = None,
) -> Dense:
    """column_scale * S (A + L) S dense + residual."""
    dtype = torch.promote_types(dense.dtype, torch.float32)
    scale, loop_weight = (
        vector[:, None].to(dtype)
        for vector in (adjacency.scale, adjacency.self_loop_weight)
    )
    scaled = scale * dense
    out = spmm(adjacency.csr, scaled).addcmul_(loop_weight, scaled).mul_(scale)
    if column_scale is not None:
        out.mul_(column_scale)
    if residual is not None:
        out.add_(residual)
    return out.to(dense.dtype)


def gat_forward(
    rows: CSRMatrix,
    x: Float[Tensor, "sources heads width"],
    source: Float[Tensor, "sources heads"],
    target: Float[Tensor, "targets heads"],
    *,
    needs_grad: bool,
    options: AttentionOptions = DEFAULT_ATTENTION,
) -> AttentionOutput:
    """The attention-weighted sums over incoming edges, with their logsumexp."""
    inputs = as_arrays(x, source, target)
    shape = (*target.shape, x.shape[2])
    out, logsumexp = (np.empty(size, inputs[0].dtype) for size in (shape, shape[:2]))
    jacobian = np.empty_like(out if needs_grad else out[..., :0])
    _gat_forward(
        csr_arrays(rows.T),
        inputs,
        out,
        logsumexp,
        jacobian,
        *compiled_options(options, out),
    )
    result, target_jacobian = (
        torch.from_numpy(array).to(x.dtype) for array in (out, jacobian)
    )
    return result, torch.from_numpy(logsumexp), target_jacobian


def gat_backward(
    rows: CSRMatrix,
    x: Float[Tensor, "sources heads width"],
    source: Float[Tensor, "sources heads"],
    target: Float[Tensor, "targets heads"],
    out: Float[Tensor, "targets heads width"],
    logsumexp: Float[Tensor, "targets heads"],
    target_jacobian: Float[Tensor, "targets heads width"],
    grad_out: Float[Tensor, "targets heads width"],
    options: AttentionOptions = DEFAULT_ATTENTION,
) -> tuple[
    Float[Tensor, "sources heads width"],
    Float[Tensor, "sources heads"],
    Float[Tensor, "targets heads"],
]:
    """The gradients of x, source and target."""
    exact = grad_out.to(logsumexp.dtype)
    grad_dot_out, grad_target = (exact * out).sum(2), (exact * target_jacobian).sum(2)
    inputs = as_arrays(x, source, target, logsumexp, grad_out, grad_dot_out)
    grad_x, grad_source = np.empty_like(inputs[0]), np.empty_like(inputs[1])
    _gat_backward(
        csr_arrays(rows),
        inputs,
        grad_x,
        grad_source,
        *compiled_options(options, grad_x),
    )
    return (
        torch.from_numpy(grad_x).to(x.dtype),
        torch.from_numpy(grad_source).to(source.dtype),
        grad_target.to(target.dtype),
    )


def compiled_options(options: AttentionOptions, like: np.ndarray) -> tuple[Any, ...]:
    """The options as the loops take them; None is left out when they are compiled."""
    negative_slope, num_loops, keep, keep_scale, positions = options
    dropout = None
    if keep is not None:
        index = np.empty(0, np.int32) if positions is None else positions.numpy()
        dropout = keep.contiguous().numpy(), index, like.dtype.type(keep_scale)
    loops = None if num_loops is None else np.int64(num_loops)
    return like.dtype.type(negative_slope), loops, dropout


def as_arrays(*tensors: Tensor) -> tuple[np.ndarray, ...]:
    """Contiguous arrays in the dtype of the first tensor, at least float32."""
    dtype = torch.promote_types(tensors[0].dtype, torch.float32)
    return tuple(tensor.detach().to(dtype).contiguous().numpy() for tensor in tensors)


def csr_arrays(rows: CSRMatrix) -> tuple[np.ndarray, np.ndarray]:
    """The indptr and the indices."""
    return rows.indptr.numpy(), rows.indices.numpy()


@njit()
def _leaky_relu(score, negative_slope):
    return score if score > 0 else negative_slope * score


@njit()
def _node(indices, entry, last, row):
    """The neighbour of an entry, -1 for a self-loop; the row itself at `last`.

    So every row has exactly one self-loop.
    """
    if entry == last:
        return row
    node = np.int64(indices[entry])
    return node if node != row else np.int64(-1)


@njit()
def node_or_loop(indices, entry, last, row, num_loops):
    """The same with a self-loop for some rows; for none, all edges as they are."""
    if num_loops is None:
        return _node(indices, entry, last, row)
    if entry == last:
        return row if row < num_loops else np.int64(-1)
    node = np.int64(indices[entry])
    return node if node != row or num_loops == 0 else np.int64(-1)


@njit()
def _has_loop(row, num_loops):
    if num_loops is None:
        return True
    return row < num_loops


@njit()
def dropped(weight, dropout, entry, last, row, size, head):
    """The weight of an incoming entry after dropout."""
    if dropout is None:
        return weight
    keep, _, keep_scale = dropout
    position = entry if entry < last else size + row
    return keep_scale * weight if keep[position, head] else weight * 0


@njit()
def dropped_outgoing(weight, dropout, entry, last, row, size, head):
    """The weight of an outgoing entry after dropout."""
    if dropout is None:
        return weight
    keep, positions, keep_scale = dropout
    position = np.int64(positions[entry]) if entry < last else size + row
    return keep_scale * weight if keep[position, head] else weight * 0


@njit(parallel=True)
def _gat_forward(
    edges, inputs, out, logsumexp, jacobian, negative_slope, num_loops, dropout
):
    indptr = edges[0]
    # Of each row and head: the sum of all weights, and of those of positive scores.
    sums = np.empty((len(out), 2, out.shape[1]), out.dtype)
    for row in numba.prange(len(out)):
        out[row], jacobian[row], sums[row] = 0, 0, 0
        if indptr[row] == indptr[row + 1] and not _has_loop(row, num_loops):
            logsumexp[row] = 0
            continue
        _max_source(np.int64(row), edges, inputs[1], logsumexp, num_loops)
        _gat_forward_row(
            np.int64(row),
            edges,
            inputs,
            out,
            logsumexp,
            jacobian,
            sums,
            negative_slope,
            num_loops,
            dropout,
        )


@njit()
def _max_source(row, edges, source, largest, num_loops):
    """The largest source score of each head among the neighbours of a row."""
    indptr, indices = edges
    first = row if _has_loop(row, num_loops) else np.int64(indices[indptr[row]])
    for head in range(source.shape[1]):
        largest[row, head] = source[first, head]
    for entry in range(indptr[row], indptr[row + 1]):
        node = indices[entry]
        for head in range(source.shape[1]):
            largest[row, head] = max(largest[row, head], source[node, head])


@njit(fastmath=FASTMATH)
def _gat_forward_row(
    row,
    edges,
    inputs,
    out,
    logsumexp,
    jacobian,
    sums,
    negative_slope,
    num_loops,
    dropout,
):
    """The output of one row; `logsumexp` holds the largest source scores before."""
    (indptr, indices), (x, source, target) = edges, inputs
    last, heads, columns = indptr[row + 1], x.shape[1], x.shape[2]
    for head in range(heads):
        # LeakyReLU is monotonic: the largest source has the largest score.
        largest = logsumexp[row, head] + target[row, head]
        logsumexp[row, head] = _leaky_relu(largest, negative_slope)
    for entry in range(indptr[row], last + 1):
        node = node_or_loop(indices, entry, last, row, num_loops)
        if node < 0:
            continue
        # All heads of a neighbour at once: its features are read in one go.
        for head in range(heads):
            score = source[node, head] + target[row, head]
            activated = _leaky_relu(score, negative_slope)
            weight = np.exp(activated - logsumexp[row, head])
            sums[row, 0, head] += weight
            kept = dropped(weight, dropout, entry, last, row, len(indices), head)
            # Without a branch, which would be taken at random.
            is_positive = x.dtype.type(score > 0)
            sums[row, 1, head] += is_positive * weight
            positive = is_positive * kept
            for k in range(columns):
                out[row, head, k] += kept * x[node, head, k]
            for k in range(jacobian.shape[2]):
                jacobian[row, head, k] += positive * x[node, head, k]
    _divide_by_sums(row, out, logsumexp, jacobian, sums, negative_slope)


@njit(fastmath=FASTMATH)
def _divide_by_sums(row, out, logsumexp, jacobian, sums, negative_slope):
    """Normalise the sums of a row."""
    for head in range(out.shape[1]):
        total, positive = sums[row, 0, head], sums[row, 1, head]
        for k in range(out.shape[2]):
            out[row, head, k] /= total
        factor = (1 - negative_slope) / total
        for k in range(jacobian.shape[2]):
            jacobian[row, head, k] = factor * (
                jacobian[row, head, k] - positive * out[row, head, k]
            )
        logsumexp[row, head] += np.log(total)


@njit(parallel=True)
def _gat_backward(
    edges, inputs, grad_x, grad_source, negative_slope, num_loops, dropout
):
    for row in numba.prange(len(grad_source)):
        grad_x[row], grad_source[row] = 0, 0
        _gat_backward_row(
            np.int64(row),
            edges,
            inputs,
            grad_x,
            grad_source,
            negative_slope,
            num_loops,
            dropout,
        )


@njit()
def _grad_score(weight, kept, grad_weight, grad_dot_out, dropout):
    """The gradient of a score; `grad_weight` is that of a weight without dropout."""
    if dropout is None:
        return weight * grad_weight
    return kept * (grad_weight + grad_dot_out) - weight * grad_dot_out


@njit(fastmath=FASTMATH)
def _gat_backward_row(
    row, edges, inputs, grad_x, grad_source, negative_slope, num_loops, dropout
):
    (indptr, indices), (x, source, target, logsumexp, grad_out, grad_dot_out) = (
        edges,
        inputs,
    )
    last = indptr[row + 1]
    for entry in range(indptr[row], last + 1):
        node = node_or_loop(indices, entry, last, row, num_loops)
        if node < 0:
            continue
        for head in range(x.shape[1]):
            score = source[row, head] + target[node, head]
            weight = np.exp(_leaky_relu(score, negative_slope) - logsumexp[node, head])
            grad_weight = -grad_dot_out[node, head]
            kept = dropped_outgoing(
                weight, dropout, entry, last, row, len(indices), head
            )
            for k in range(x.shape[2]):
                grad_weight += x[row, head, k] * grad_out[node, head, k]
                grad_x[row, head, k] += kept * grad_out[node, head, k]
            grad_score = _grad_score(
                weight, kept, grad_weight, grad_dot_out[node, head], dropout
            )
            factor = 1 if score > 0 else negative_slope
            grad_source[row, head] += factor * grad_score


def adamw(
    state: AdamWState, grad: Float[Tensor, "rows runs width"], step: AdamWStep
) -> None:
    """Save the best weights, then take an AdamW step, in one pass over memory."""
    rows, runs, width = state.weight.shape
    tensors = (state.weight, state.exp_avg, state.exp_avg_sq, state.best_weight, grad)
    settings = (step.lr, step.weight_decay, step.improved)
    _adamw(
        *(tensor.reshape(rows * runs, width).numpy() for tensor in tensors),
        *(setting.numpy() for setting in settings),
        *step.bias_corrections.numpy(),
    )
    if state.weight_bf16 is not None:
        state.weight_bf16.copy_(state.weight)


@njit(parallel=True, fastmath=True)
def _adamw(
    weight,
    exp_avg,
    exp_avg_sq,
    best_weight,
    gradient,
    lr,
    weight_decay,
    improved,
    correction1,
    correction2,
):
    runs = len(lr)
    beta1, beta2 = np.float32(BETA1), np.float32(BETA2)
    rest1, rest2 = np.float32(1 - BETA1), np.float32(1 - BETA2)
    eps, one = np.float32(ADAM_EPS), np.float32(1)
    for row in numba.prange(len(weight)):
        run = row % runs
        decay_factor = one - lr[run] * weight_decay[run]
        step_size = lr[run] * correction1
        if improved[run]:
            for k in range(weight.shape[1]):
                best_weight[row, k] = weight[row, k]
        for k in range(weight.shape[1]):
            grad = gradient[row, k]
            avg = beta1 * exp_avg[row, k] + rest1 * grad
            avg_sq = beta2 * exp_avg_sq[row, k] + rest2 * grad * grad
            exp_avg[row, k] = avg
            exp_avg_sq[row, k] = avg_sq
            denominator = np.sqrt(avg_sq * correction2) + eps
            weight[row, k] = (
                decay_factor * weight[row, k] - step_size * avg / denominator
            )


def spmm_adamw(
    state: AdamWState,
    rows: CSRMatrix,
    grad_out: Float[Tensor, "sources runs width"],
    step: AdamWStep,
) -> None:
    """An AdamW step along the gradient rows @ grad_out."""
    grad = spmm(rows, grad_out.flatten(1).float())
    adamw(state, grad.view_as(state.weight), step)


def bias_relu_(total: Sums, bias: Float[Tensor, "*runs width"]) -> Sums:
    """relu(total + bias), in place."""
    return total.add_(bias.unsqueeze(-2)).relu_()


def bias_relu_backward(
    grad_out: Sums, total: Sums
) -> tuple[Sums, Float[Tensor, "*runs width"]]:
    """The gradients of total and bias."""
    grad = torch.ops.aten.threshold_backward(grad_out, total, 0)
    return grad, grad.sum(-2)
