"""Triton kernels of GATv2 attention: forward, and backward by source and by target."""

from __future__ import annotations

import triton
import triton.language as tl

from unalike.nn.triton_attention import (
    LOWEST,
    dropped,
    load_neighbour_features,
    load_neighbours,
    load_row,
    load_row_features,
    neighbour_nodes,
    store_row,
    store_row_features,
)


@triton.jit
def _score(x, att, negative_slope: tl.constexpr):
    """The scores of sums of columns [neighbours, heads, columns]."""
    return tl.sum(tl.where(x > 0, x, negative_slope * x) * att[None, :, :], 2)


@triton.jit
def gatv2_forward(
    indptr,
    indices,
    row_order,
    left,
    right,
    att,
    out,
    logsumexp,
    keep,
    positions,
    nnz,
    keep_scale,
    heads,
    num_loops,
    width: tl.constexpr,
    negative_slope: tl.constexpr,
    acc_dtype: tl.constexpr,
    replaces_loops: tl.constexpr,
    has_dropout: tl.constexpr,
    heads_per_program: tl.constexpr,
    padded_width: tl.constexpr,
    neighbours: tl.constexpr,
):
    """The attention-weighted sum of neighbours; the softmax is taken on the way."""
    row = tl.load(row_order + tl.program_id(0)).to(tl.int64)
    head = tl.program_id(1) * heads_per_program + tl.arange(0, heads_per_program)
    column = tl.arange(0, padded_width)
    begin = tl.load(indptr + row)
    end = tl.load(indptr + row + 1)
    dropout = (keep, positions, nnz, keep_scale)
    own = load_row_features(right, row, head, heads, column, width, acc_dtype)
    vector = load_row_features(att, 0, head, heads, column, width, acc_dtype)
    running_max = tl.full([neighbours, heads_per_program], LOWEST, acc_dtype)
    total = tl.zeros([neighbours, heads_per_program], acc_dtype)
    sums = tl.zeros([neighbours, heads_per_program, padded_width], acc_dtype)
    for entry in range(begin, end + 1, neighbours):
        position, node, valid = neighbour_nodes(
            indices, entry, end, row, num_loops, replaces_loops, neighbours
        )
        mask = valid & (head < heads)[None, :]
        features = load_neighbour_features(
            left, node, mask, head, heads, column, width, acc_dtype
        )
        score = _score(features + own[None, :, :], vector, negative_slope)
        score = tl.where(mask, score, float("-inf"))
        new_max = tl.maximum(running_max, score)
        rescale = tl.exp(running_max - new_max)
        weight = tl.exp(score - new_max)
        total = total * rescale + weight
        kept = dropped(
            weight, dropout, position, end, row, head, heads, mask, has_dropout, False
        )
        sums = sums * rescale[:, :, None] + kept[:, :, None] * features
        running_max = new_max
    max_score = tl.max(running_max, 0)
    rescale = tl.exp(running_max - max_score[None, :])
    total = tl.sum(total * rescale, 0)
    result = tl.sum(sums * rescale[:, :, None], 0)
    empty = total == 0
    total = tl.where(empty, 1, total)
    lse = tl.where(empty, 0, max_score + tl.log(total))
    store_row(logsumexp, lse, row, head, heads)
    store_row_features(out, result / total[:, None], row, head, heads, column, width)


@triton.jit
def gatv2_backward_source(
    indptr,
    indices,
    row_order,
    left,
    right,
    att,
    logsumexp,
    grad_out,
    grad_dot_out,
    grad_left,
    keep,
    positions,
    nnz,
    keep_scale,
    heads,
    num_loops,
    width: tl.constexpr,
    negative_slope: tl.constexpr,
    acc_dtype: tl.constexpr,
    replaces_loops: tl.constexpr,
    has_dropout: tl.constexpr,
    heads_per_program: tl.constexpr,
    padded_width: tl.constexpr,
    neighbours: tl.constexpr,
):
    """The gradient of `left`, summed along outgoing edges."""
    row = tl.load(row_order + tl.program_id(0)).to(tl.int64)
    head = tl.program_id(1) * heads_per_program + tl.arange(0, heads_per_program)
    column = tl.arange(0, padded_width)
    begin = tl.load(indptr + row)
    end = tl.load(indptr + row + 1)
    dropout = (keep, positions, nnz, keep_scale)
    own = load_row_features(left, row, head, heads, column, width, acc_dtype)
    vector = load_row_features(att, 0, head, heads, column, width, acc_dtype)
    total = tl.zeros([neighbours, heads_per_program, padded_width], acc_dtype)
    for entry in range(begin, end + 1, neighbours):
        position, node, valid = neighbour_nodes(
            indices, entry, end, row, num_loops, replaces_loops, neighbours
        )
        mask = valid & (head < heads)[None, :]
        x = load_neighbour_features(
            right, node, mask, head, heads, column, width, acc_dtype
        )
        x += own[None, :, :]
        lse = load_neighbours(logsumexp, node, head, heads, mask, acc_dtype)
        weight = tl.exp(_score(x, vector, negative_slope) - lse)
        weight = tl.where(mask, weight, 0)
        kept = dropped(
            weight, dropout, position, end, row, head, heads, mask, has_dropout, True
        )
        grad = load_neighbour_features(
            grad_out, node, mask, head, heads, column, width, acc_dtype
        )
        dot = load_neighbours(grad_dot_out, node, head, heads, mask, acc_dtype)
        grad_score = kept * tl.sum(grad * own[None, :, :], 2) - weight * dot
        factor = tl.where(
            x > 0, vector[None, :, :], negative_slope * vector[None, :, :]
        )
        total += kept[:, :, None] * grad + grad_score[:, :, None] * factor
    result = tl.sum(total, 0)
    store_row_features(grad_left, result, row, head, heads, column, width)


@triton.jit
def gatv2_backward_target(
    indptr,
    indices,
    row_order,
    left,
    right,
    att,
    logsumexp,
    grad_out,
    grad_dot_out,
    grad_right,
    grad_att,
    keep,
    positions,
    nnz,
    keep_scale,
    heads,
    num_loops,
    width: tl.constexpr,
    negative_slope: tl.constexpr,
    acc_dtype: tl.constexpr,
    replaces_loops: tl.constexpr,
    has_dropout: tl.constexpr,
    heads_per_program: tl.constexpr,
    padded_width: tl.constexpr,
    neighbours: tl.constexpr,
):
    """The gradient of `right`, and what each target adds to that of `att`."""
    row = tl.load(row_order + tl.program_id(0)).to(tl.int64)
    head = tl.program_id(1) * heads_per_program + tl.arange(0, heads_per_program)
    column = tl.arange(0, padded_width)
    begin = tl.load(indptr + row)
    end = tl.load(indptr + row + 1)
    dropout = (keep, positions, nnz, keep_scale)
    own = load_row_features(right, row, head, heads, column, width, acc_dtype)
    vector = load_row_features(att, 0, head, heads, column, width, acc_dtype)
    grad = load_row_features(grad_out, row, head, heads, column, width, acc_dtype)
    dot = load_row(grad_dot_out, row, head, heads, acc_dtype)
    lse = load_row(logsumexp, row, head, heads, acc_dtype)
    total = tl.zeros([neighbours, heads_per_program, padded_width], acc_dtype)
    att_total = tl.zeros([neighbours, heads_per_program, padded_width], acc_dtype)
    for entry in range(begin, end + 1, neighbours):
        position, node, valid = neighbour_nodes(
            indices, entry, end, row, num_loops, replaces_loops, neighbours
        )
        mask = valid & (head < heads)[None, :]
        features = load_neighbour_features(
            left, node, mask, head, heads, column, width, acc_dtype
        )
        x = features + own[None, :, :]
        weight = tl.exp(_score(x, vector, negative_slope) - lse[None, :])
        weight = tl.where(mask, weight, 0)
        kept = dropped(
            weight, dropout, position, end, row, head, heads, mask, has_dropout, False
        )
        grad_weight = tl.sum(features * grad[None, :, :], 2)
        grad_score = kept * grad_weight - weight * dot[None, :]
        factor = grad_score[:, :, None]
        factor = tl.where(x > 0, factor, negative_slope * factor)
        total += factor
        att_total += factor * x
    result = tl.sum(total, 0) * vector
    store_row_features(grad_right, result, row, head, heads, column, width)
    result = tl.sum(att_total, 0)
    store_row_features(grad_att, result, row, head, heads, column, width)
