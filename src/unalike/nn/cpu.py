"""CPU kernels: SpMM by embedding_bag, numba loops for propagation, GAT and AdamW."""

from __future__ import annotations

from functools import partial
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
from unalike.nn.sparse import (
    Dense,
    NormalizedCSR,
    Vector,
    normalized_product,
    scale_and_add_,
)

FASTMATH = {"reassoc", "contract"}
"""Sums may be reordered, the same way each time; NaN remains NaN."""
MAX_NNZ_PER_CALL = 2**31 - 1
HALF_DTYPES = (torch.bfloat16, torch.float16)
Sums = Float[Tensor, "*runs nodes width"]


def spmm(
    rows: CSRMatrix,
    dense: Dense,
    bias: Vector | None = None,
    out: Dense | None = None,
    *,
    scale: Float[Tensor, " rows"] | None = None,
    residual: Dense | None = None,
) -> Dense:
    """scale * (rows @ dense + bias) + residual; the scale is by row."""
    exact = dense.float() if dense.dtype in HALF_DTYPES else dense
    total = _embedding_bags(rows.indptr, rows.indices, rows.values, exact)
    total = total if bias is None else total.add_(bias)
    result = scale_and_add_(total, scale, residual).to(dense.dtype)
    return result if out is None else out.copy_(result)


def _embedding_bags(
    indptr: Tensor, indices: Tensor, values: Tensor | None, dense: Dense
) -> Dense:
    """The weighted sums of rows of a dense matrix, in blocks that torch can count."""
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
    multiply = partial(spmm, adjacency.csr)
    return normalized_product(adjacency, multiply, dense, column_scale, residual)


def gat_forward(
    rows: CSRMatrix,
    x: Float[Tensor, "sources heads width"],
    source: Float[Tensor, "sources heads"],
    target: Float[Tensor, "targets heads"],
    *,
    needs_grad: bool,
    options: AttentionOptions = DEFAULT_ATTENTION,
) -> AttentionOutput:
    """The attention-weighted sums over incoming edges, with their logsumexp.

    The weights of all edges are in memory, a number for each head, but no messages.
    """
    incoming, dtype = rows.T, torch.promote_types(x.dtype, torch.float32)
    settings = compiled_options(options, len(target), dtype)
    heads, scores, shifts = heads_first(dtype, x, source, target)
    count = len(incoming.indices) + settings[1]
    weights = heads.new_empty(len(heads), count)
    positive = torch.empty_like(weights if needs_grad else weights[:, :0])
    logsumexp, positive_share = (torch.empty_like(shifts) for _ in range(2))
    arrays = (scores, shifts, weights, positive, logsumexp, positive_share)
    numbers = (array.numpy() for array in arrays)
    _gat_weights(csr_arrays(incoming), settings, *numbers)
    out = _sums_of_heads(incoming, weights, heads)
    jacobian = out[..., :0]
    if needs_grad:
        jacobian = _sums_of_heads(incoming, positive, heads)
        jacobian.sub_(positive_share[..., None] * out).mul_(1 - settings[0])
    nodes_first = (part.transpose(0, 1).contiguous() for part in (out, jacobian))
    result, jacobian = (part.to(x.dtype) for part in nodes_first)
    return result, logsumexp.t().contiguous(), jacobian


def heads_first(dtype: torch.dtype, *tensors: Tensor) -> list[Tensor]:
    """Contiguous copies [heads, nodes, ...] of tensors [nodes, heads, ...]."""
    return [
        tensor.detach().to(dtype).transpose(0, 1).contiguous() for tensor in tensors
    ]


def _sums_of_heads(
    rows: CSRMatrix,
    weights: Float[Tensor, "heads entries_and_loops"],
    x: Float[Tensor, "heads nodes width"],
) -> Float[Tensor, "heads rows width"]:
    """The weighted sums of x over the entries of each row and its self-loop."""
    nnz = len(rows.indices)
    sums = torch.stack(
        [
            _embedding_bags(rows.indptr, rows.indices, weight[:nnz], values)
            for weight, values in zip(weights, x, strict=True)
        ]
    )
    loops = weights[:, nnz:, None]
    sums[:, : loops.shape[1]].addcmul_(loops, x[:, : loops.shape[1]])
    return sums


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
    exact, dtype = grad_out.to(logsumexp.dtype), logsumexp.dtype
    grad_dot_out, grad_target = (exact * out).sum(2), (exact * target_jacobian).sum(2)
    settings = compiled_options(options, len(target), dtype)
    inputs = heads_first(dtype, x, exact, source, target, logsumexp, grad_dot_out)
    weights = exact.new_empty(x.shape[1], len(rows.indices) + settings[1])
    grad_source = torch.empty_like(inputs[2])
    arrays = tuple(array.numpy() for array in inputs)
    out_arrays = weights.numpy(), grad_source.numpy()
    _gat_backward(csr_arrays(rows), arrays, *out_arrays, settings)
    grad_x = _sums_of_heads(rows, weights, inputs[1]).transpose(0, 1)
    return (
        grad_x.to(x.dtype).contiguous(),
        grad_source.t().to(source.dtype).contiguous(),
        grad_target.to(target.dtype),
    )


def compiled_options(
    options: AttentionOptions, num_targets: int, dtype: torch.dtype
) -> tuple[Any, ...]:
    """The options as the loops take them."""
    factors = torch.tensor([options.negative_slope, options.keep_scale], dtype=dtype)
    negative_slope, keep_scale = factors.numpy()
    loops, keep, positions = options.num_self_loops, options.keep, options.positions
    return (
        negative_slope,
        num_targets if loops is None else loops,
        None if keep is None else keep.contiguous().numpy(),
        np.empty(0, np.int32) if positions is None else positions.numpy(),
        keep_scale,
    )


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
def node_or_loop(indices, entry, last, row, num_loops):
    """The neighbour of an entry; the row itself at `last`, where it has a self-loop.

    It is -1 for an entry that does not count: a self-loop that another one replaces.
    """
    if entry == last:
        return row if row < num_loops else np.int64(-1)
    node = np.int64(indices[entry])
    return node if node != row or num_loops == 0 else np.int64(-1)


@njit()
def dropped(weight, keep, keep_scale, position, head):
    """The weight of an incoming entry after dropout; self-loops come last."""
    if keep is None:
        return weight
    return keep_scale * weight if keep[position, head] else weight * 0


@njit()
def dropped_outgoing(weight, keep, keep_scale, positions, position, head):
    """The weight of an outgoing entry after dropout."""
    if keep is None:
        return weight
    incoming = np.int64(positions[position]) if position < len(positions) else position
    return dropped(weight, keep, keep_scale, incoming, head)


# The loops take one head after the other, whose numbers stay in the cache.


@njit(parallel=True)
def _gat_weights(
    edges, settings, source, target, weights, positive, logsumexp, positive_share
):
    """The attention weights, and again those of positive scores alone."""
    for head in range(len(target)):
        for row in numba.prange(target.shape[1]):
            own = (np.int64(row), np.int64(head), source[head], target[head, row])
            logsumexp[head, row], positive_share[head, row] = _softmax_of_row(
                own, edges, weights[head], settings
            )
            _drop_row(own, edges, weights[head], positive[head], settings)


@njit(fastmath=FASTMATH)
def _softmax_of_row(own, edges, weights, settings):
    """Write the weights of a row; its logsumexp, and the sum over positive scores."""
    row, _, source, shift = own
    indptr, indices = edges
    negative_slope, num_loops = settings[:2]
    first, last, size = indptr[row], indptr[row + 1], len(indices)
    end = last + 1 if row < num_loops else last
    zero = source.dtype.type(0)
    # LeakyReLU is monotonic: the largest source has the largest score.
    largest = source.dtype.type(-np.inf)
    for entry in range(first, end):
        node = node_or_loop(indices, entry, last, row, num_loops)
        if node >= 0:
            largest = max(largest, source[node])
    largest = _leaky_relu(largest + shift, negative_slope)
    total, positive = zero, zero
    for entry in range(first, end):
        node = node_or_loop(indices, entry, last, row, num_loops)
        weight = zero
        if node >= 0:
            score = source[node] + shift
            weight = np.exp(_leaky_relu(score, negative_slope) - largest)
            total += weight
            # Without a branch, which would be taken at random.
            positive += weight * source.dtype.type(score > 0)
        weights[entry if entry < last else size + row] = weight
    if total == 0:  # no entries
        return zero, zero
    for entry in range(first, end):
        weights[entry if entry < last else size + row] /= total
    return largest + np.log(total), positive / total


@njit()
def _drop_row(own, edges, weights, positive, settings):
    """Drop weights of a row, and copy those of positive scores."""
    row, head, source, shift = own
    indptr, indices = edges
    _, num_loops, keep, _, keep_scale = settings
    first, last, size = indptr[row], indptr[row + 1], len(indices)
    end = last + 1 if row < num_loops else last
    for entry in range(first, end):
        position = entry if entry < last else size + row
        weight = dropped(weights[position], keep, keep_scale, position, head)
        weights[position] = weight
        if len(positive):
            node = np.int64(indices[entry]) if entry < last else row
            is_positive = source[node] + shift > 0
            positive[position] = weight * source.dtype.type(is_positive)


@njit(parallel=True)
def _gat_backward(edges, inputs, weights, grad_source, settings):
    """The weights of outgoing edges, and the gradients of the source scores."""
    for head in range(len(grad_source)):
        for row in numba.prange(grad_source.shape[1]):
            grad_source[head, row] = _gat_backward_row(
                np.int64(row), np.int64(head), edges, inputs, weights[head], settings
            )


@njit(fastmath=FASTMATH)
def _gat_backward_row(row, head, edges, inputs, weights, settings):
    """Write the weights of a row; the gradient of its source score."""
    indptr, indices = edges
    negative_slope, num_loops, keep, positions, keep_scale = settings
    x, grad_out = inputs[0][head, row], inputs[1][head]
    shift, target = inputs[2][head, row], inputs[3][head]
    logsumexp, grad_dot_out = inputs[4][head], inputs[5][head]
    first, last, size = indptr[row], indptr[row + 1], len(indices)
    end = last + 1 if row < num_loops else last
    total, one = x.dtype.type(0), x.dtype.type(1)
    for entry in range(first, end):
        position = entry if entry < last else size + row
        node = node_or_loop(indices, entry, last, row, num_loops)
        if node < 0:
            weights[position] = 0
            continue
        score = shift + target[node]
        weight = np.exp(_leaky_relu(score, negative_slope) - logsumexp[node])
        kept = dropped_outgoing(weight, keep, keep_scale, positions, position, head)
        grad_weight, row_of_grad = x.dtype.type(0), grad_out[node]
        for k in range(len(x)):
            grad_weight += x[k] * row_of_grad[k]
        grad_score = kept * grad_weight - weight * grad_dot_out[node]
        total += grad_score * (one if score > 0 else negative_slope)
        weights[position] = kept
    return total


def adamw(
    state: AdamWState, grad: Float[Tensor, "rows runs width"], step: AdamWStep
) -> None:
    """Save the best weights, then take an AdamW step, in one pass over memory."""
    rows, runs, width = state.weight.shape
    tensors = (state.weight, state.exp_avg, state.exp_avg_sq, state.best_weight, grad)
    options = (step.lr, step.weight_decay, step.improved, step.bias_corrections)
    _adamw(
        tuple(tensor.reshape(rows * runs, width).numpy() for tensor in tensors),
        tuple(option.numpy() for option in options),
    )
    if state.weight_bf16 is not None:
        state.weight_bf16.copy_(state.weight)


@njit(parallel=True, fastmath=True)
def _adamw(tensors, options):
    weight, exp_avg, exp_avg_sq, best_weight, gradient = tensors
    lr, weight_decay, improved, corrections = options
    runs = len(lr)
    beta1, beta2 = np.float32(BETA1), np.float32(BETA2)
    rest1, rest2 = np.float32(1 - BETA1), np.float32(1 - BETA2)
    eps, one = np.float32(ADAM_EPS), np.float32(1)
    for row in numba.prange(len(weight)):
        run = row % runs
        decay_factor = one - lr[run] * weight_decay[run]
        step_size = lr[run] * corrections[0]
        if improved[run]:
            for k in range(weight.shape[1]):
                best_weight[row, k] = weight[row, k]
        for k in range(weight.shape[1]):
            grad = gradient[row, k]
            avg = beta1 * exp_avg[row, k] + rest1 * grad
            avg_sq = beta2 * exp_avg_sq[row, k] + rest2 * grad * grad
            exp_avg[row, k] = avg
            exp_avg_sq[row, k] = avg_sq
            denominator = np.sqrt(avg_sq * corrections[1]) + eps
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
