"""CPU kernels of GATv2 attention: numba loops that store nothing per edge."""

from __future__ import annotations

import numba
import numpy as np
import torch
from torch import Tensor

from unalike.data.csr import CSRMatrix
from unalike.data.numba_utils import njit
from unalike.nn.attention import AttentionOptions
from unalike.nn.cpu import (
    FASTMATH,
    as_arrays,
    compiled_options,
    csr_arrays,
    dropped,
    dropped_outgoing,
    node_or_loop,
)


def gatv2_forward(
    rows: CSRMatrix, left: Tensor, right: Tensor, att: Tensor, options: AttentionOptions
) -> tuple[Tensor, Tensor]:
    """The attention-weighted sums of `left` over incoming edges, and their logsumexp.

    `rows` holds the outgoing edges; `left` is [sources, heads, columns], `right` has a
    row for each target, `att` is [heads, columns].
    """
    exact = torch.promote_types(left.dtype, torch.float32)
    inputs = as_arrays(left, right, att)
    out, logsumexp = np.zeros_like(inputs[1]), np.empty_like(inputs[1][..., 0])
    settings = compiled_options(options, len(out), exact)
    if out.size:
        _forward(csr_arrays(rows.T), inputs, out, logsumexp, settings)
    return torch.from_numpy(out).to(left.dtype), torch.from_numpy(logsumexp)


def gatv2_backward(
    rows: CSRMatrix,
    left: Tensor,
    right: Tensor,
    att: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    grad_out: Tensor,
    options: AttentionOptions,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of left, right and att."""
    grad_dot_out = (grad_out.to(logsumexp.dtype) * out).sum(2)
    inputs = as_arrays(left, right, att, logsumexp, grad_out, grad_dot_out)
    left_grad, right_grad, att_grad = (np.zeros_like(inputs[i]) for i in (0, 1, 1))
    settings = compiled_options(options, len(right), logsumexp.dtype)
    if left.numel() and right.numel():
        _backward_by_source(csr_arrays(rows), inputs, left_grad, settings)
        _backward_by_target(csr_arrays(rows.T), inputs, right_grad, att_grad, settings)
    return (
        torch.from_numpy(left_grad).to(left.dtype),
        torch.from_numpy(right_grad).to(right.dtype),
        torch.from_numpy(att_grad).sum(0).to(att.dtype),
    )


@njit(fastmath=FASTMATH)
def _score(left, right, att, source, target, head, negative_slope):
    total = left.dtype.type(0)
    for k in range(left.shape[2]):
        x = left[source, head, k] + right[target, head, k]
        total += att[head, k] * (x if x > 0 else negative_slope * x)
    return total


@njit(parallel=True)
def _forward(edges, inputs, out, logsumexp, settings):
    totals = np.zeros_like(logsumexp)
    for row in numba.prange(len(out)):
        logsumexp[row] = -np.inf
        _forward_row(np.int64(row), edges, inputs, out, logsumexp, totals, settings)


@njit(fastmath=FASTMATH)
def _forward_row(row, edges, inputs, out, largest, totals, settings):
    """The output of one row; `largest` becomes the logsumexp."""
    (indptr, indices), (left, right, att) = edges, inputs
    negative_slope, num_loops, keep, _, keep_scale = settings
    last, columns = indptr[row + 1], out.shape[2]
    for entry in range(indptr[row], last + 1):
        node = node_or_loop(indices, entry, last, row, num_loops)
        if node < 0:
            continue
        for head in range(out.shape[1]):
            score = _score(left, right, att, node, row, head, negative_slope)
            if score > largest[row, head]:
                rescale = np.exp(largest[row, head] - score)
                largest[row, head] = score
                totals[row, head] *= rescale
                for k in range(columns):
                    out[row, head, k] *= rescale
            weight = np.exp(score - largest[row, head])
            totals[row, head] += weight
            position = entry if entry < last else len(indices) + row
            kept = dropped(weight, keep, keep_scale, position, head)
            for k in range(columns):
                out[row, head, k] += kept * left[node, head, k]
    _divide_by_totals(row, out, largest, totals)


@njit(fastmath=FASTMATH)
def _divide_by_totals(row, out, largest, totals):
    """Normalise the sums of a row."""
    for head in range(out.shape[1]):
        total = totals[row, head]
        if total == 0:  # no entries
            largest[row, head] = 0
            continue
        largest[row, head] += np.log(total)
        for k in range(out.shape[2]):
            out[row, head, k] /= total


@njit(parallel=True)
def _backward_by_source(edges, inputs, grad_left, settings):
    for row in numba.prange(len(grad_left)):
        _backward_source_row(np.int64(row), edges, inputs, grad_left, settings)


@njit(fastmath=FASTMATH)
def _backward_source_row(row, edges, inputs, grad_left, settings):
    indptr, indices = edges
    negative_slope, num_loops, keep, positions, keep_scale = settings
    left, right, att, logsumexp, grad_out, grad_dot_out = inputs
    last, columns = indptr[row + 1], left.shape[2]
    for entry in range(indptr[row], last + 1):
        node = node_or_loop(indices, entry, last, row, num_loops)
        if node < 0:
            continue
        for head in range(left.shape[1]):
            score = _score(left, right, att, row, node, head, negative_slope)
            weight = np.exp(score - logsumexp[node, head])
            position = entry if entry < last else len(indices) + row
            kept = dropped_outgoing(weight, keep, keep_scale, positions, position, head)
            grad_weight = left.dtype.type(0)
            for k in range(columns):
                grad_weight += grad_out[node, head, k] * left[row, head, k]
            grad_score = kept * grad_weight - weight * grad_dot_out[node, head]
            for k in range(columns):
                x = left[row, head, k] + right[node, head, k]
                factor = att[head, k] * (1 if x > 0 else negative_slope)
                grad_left[row, head, k] += (
                    kept * grad_out[node, head, k] + grad_score * factor
                )


@njit(parallel=True)
def _backward_by_target(edges, inputs, grad_right, grad_att, settings):
    for row in numba.prange(len(grad_right)):
        _backward_target_row(
            np.int64(row), edges, inputs, grad_right, grad_att, settings
        )


@njit(fastmath=FASTMATH)
def _backward_target_row(row, edges, inputs, grad_right, grad_att, settings):
    indptr, indices = edges
    negative_slope, num_loops, keep, _, keep_scale = settings
    left, right, att, logsumexp, grad_out, grad_dot_out = inputs
    last, columns = indptr[row + 1], left.shape[2]
    for entry in range(indptr[row], last + 1):
        node = node_or_loop(indices, entry, last, row, num_loops)
        if node < 0:
            continue
        for head in range(left.shape[1]):
            score = _score(left, right, att, node, row, head, negative_slope)
            weight = np.exp(score - logsumexp[row, head])
            position = entry if entry < last else len(indices) + row
            kept = dropped(weight, keep, keep_scale, position, head)
            grad_weight = left.dtype.type(0)
            for k in range(columns):
                grad_weight += grad_out[row, head, k] * left[node, head, k]
            grad_score = kept * grad_weight - weight * grad_dot_out[row, head]
            for k in range(columns):
                x = left[node, head, k] + right[row, head, k]
                factor = grad_score * (1 if x > 0 else negative_slope)
                grad_right[row, head, k] += factor * att[head, k]
                grad_att[row, head, k] += factor * x
