"""Triton kernels of GAT attention: softmax statistics, forward and backward."""

from __future__ import annotations

import triton
import triton.language as tl

LOWEST = tl.constexpr(-1e30)
"""Below every score, and finite: the difference of two is 0."""


@triton.jit
def _leaky_relu(score, value, negative_slope: tl.constexpr):
    return tl.where(score > 0, value, negative_slope * value)


@triton.jit
def neighbour_nodes(
    indices,
    entry,
    end,
    row,
    num_loops,
    replaces_loops: tl.constexpr,
    neighbours: tl.constexpr,
):
    """Positions of some entries and their nodes; the row itself at `end`."""
    position = entry + tl.arange(0, neighbours)
    node = tl.load(indices + position, mask=position < end, other=0).to(tl.int64)
    valid = position < end
    if replaces_loops:
        valid &= node != row
    valid |= (position == end) & (row < num_loops)
    return position, tl.where(position < end, node, row), valid[:, None]


@triton.jit
def dropped(
    weight,
    dropout,
    position,
    end,
    row,
    head,
    heads,
    mask,
    has_dropout: tl.constexpr,
    outgoing: tl.constexpr,
):
    """The weights of some entries after dropout; `keep` has the self-loops last."""
    if has_dropout:
        keep, positions, nnz, keep_scale = dropout
        index = position.to(tl.int64)
        if outgoing:
            index = tl.load(positions + position, mask=position < end, other=0)
            index = index.to(tl.int64)
        index = tl.where(position < end, index, nnz + row)
        kept = tl.load(
            keep + index[:, None] * heads + head[None, :], mask=mask, other=0
        )
        weight = tl.where(kept != 0, keep_scale * weight, 0)
    return weight


@triton.jit
def load_neighbours(array, node, head, heads, mask, acc_dtype: tl.constexpr):
    """A value of each of some nodes and heads."""
    index = node[:, None] * heads + head[None, :]
    return tl.load(array + index, mask=mask, other=0).to(acc_dtype)


@triton.jit
def load_neighbour_features(
    array, node, mask, head, heads, column, width: tl.constexpr, acc_dtype: tl.constexpr
):
    """The columns of each of some nodes and heads."""
    in_row = (head * width)[:, None] + column[None, :]
    index = (node * (heads * width))[:, None, None] + in_row[None, :, :]
    mask = mask[:, :, None] & (column < width)[None, None, :]
    return tl.load(array + index, mask=mask, other=0).to(acc_dtype)


@triton.jit
def load_row(array, row, head, heads, acc_dtype: tl.constexpr):
    """A value of each head of a row."""
    return tl.load(array + row * heads + head, mask=head < heads, other=0).to(acc_dtype)


@triton.jit
def load_row_features(
    array, row, head, heads, column, width: tl.constexpr, acc_dtype: tl.constexpr
):
    """The columns of each head of a row."""
    index = row * (heads * width) + (head * width)[:, None] + column[None, :]
    mask = (head < heads)[:, None] & (column < width)[None, :]
    return tl.load(array + index, mask=mask, other=0).to(acc_dtype)


@triton.jit
def store_row(array, result, row, head, heads):
    """Store a value of each head of a row."""
    result = result.to(array.dtype.element_ty)
    tl.store(array + row * heads + head, result, mask=head < heads)


@triton.jit
def store_row_features(array, result, row, head, heads, column, width: tl.constexpr):
    """Store the columns of each head of a row."""
    index = row * (heads * width) + (head * width)[:, None] + column[None, :]
    mask = (head < heads)[:, None] & (column < width)[None, :]
    tl.store(array + index, result.to(array.dtype.element_ty), mask=mask)


@triton.jit
def softmax_stats(
    indptr,
    indices,
    row_order,
    source,
    target,
    logsumexp,
    positive_share,
    heads,
    num_loops,
    negative_slope: tl.constexpr,
    acc_dtype: tl.constexpr,
    replaces_loops: tl.constexpr,
    heads_per_program: tl.constexpr,
    neighbours: tl.constexpr,
):
    """The logsumexp of a row's scores, and the weight of the positive ones.

    Both are 0 of a row without entries.
    """
    row = tl.load(row_order + tl.program_id(0)).to(tl.int64)
    head = tl.program_id(1) * heads_per_program + tl.arange(0, heads_per_program)
    begin = tl.load(indptr + row)
    end = tl.load(indptr + row + 1)
    own = load_row(target, row, head, heads, acc_dtype)
    has_loop = row < num_loops
    loop_source = tl.load(
        source + row * heads + head, mask=(head < heads) & has_loop, other=0
    )
    self_score = loop_source.to(acc_dtype) + own
    first_max = _leaky_relu(self_score, self_score, negative_slope)
    first_max = tl.where(has_loop, first_max, LOWEST)
    total = tl.zeros([neighbours, heads_per_program], acc_dtype)
    running_max = first_max[None, :] + total
    positive = tl.zeros([neighbours, heads_per_program], acc_dtype)
    for entry in range(begin, end + 1, neighbours):
        _, node, valid = neighbour_nodes(
            indices, entry, end, row, num_loops, replaces_loops, neighbours
        )
        mask = valid & (head < heads)[None, :]
        score = load_neighbours(source, node, head, heads, mask, acc_dtype)
        score += own[None, :]
        score = tl.where(valid, score, float("-inf"))
        activated = _leaky_relu(score, score, negative_slope)
        new_max = tl.maximum(running_max, activated)
        rescale = tl.exp(running_max - new_max)
        weight = tl.exp(activated - new_max)
        total = total * rescale + weight
        positive = positive * rescale + tl.where(score > 0, weight, 0)
        running_max = new_max
    max_score = tl.max(running_max, 0)
    rescale = tl.exp(running_max - max_score[None, :])
    total = tl.sum(total * rescale, 0)
    positive = tl.sum(positive * rescale, 0)
    empty = total == 0
    total = tl.where(empty, 1, total)
    lse = tl.where(empty, 0, max_score + tl.log(total))
    store_row(logsumexp, lse, row, head, heads)
    store_row(positive_share, positive / total, row, head, heads)


@triton.jit
def gat_forward(
    indptr,
    indices,
    row_order,
    x,
    source,
    target,
    logsumexp,
    positive_share,
    out,
    target_jacobian,
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
    needs_grad: tl.constexpr,
    heads_per_program: tl.constexpr,
    padded_width: tl.constexpr,
    neighbours: tl.constexpr,
):
    """The attention-weighted sum of neighbours, and its derivative by the target."""
    row = tl.load(row_order + tl.program_id(0)).to(tl.int64)
    head = tl.program_id(1) * heads_per_program + tl.arange(0, heads_per_program)
    column = tl.arange(0, padded_width)
    begin = tl.load(indptr + row)
    end = tl.load(indptr + row + 1)
    dropout = (keep, positions, nnz, keep_scale)
    own = load_row(target, row, head, heads, acc_dtype)
    lse = load_row(logsumexp, row, head, heads, acc_dtype)
    total = tl.zeros([neighbours, heads_per_program, padded_width], acc_dtype)
    positive = tl.zeros([neighbours, heads_per_program, padded_width], acc_dtype)
    for entry in range(begin, end + 1, neighbours):
        position, node, valid = neighbour_nodes(
            indices, entry, end, row, num_loops, replaces_loops, neighbours
        )
        mask = valid & (head < heads)[None, :]
        score = load_neighbours(source, node, head, heads, mask, acc_dtype)
        score += own[None, :]
        weight = tl.exp(_leaky_relu(score, score, negative_slope) - lse[None, :])
        weight = tl.where(mask, weight, 0)
        kept = dropped(
            weight, dropout, position, end, row, head, heads, mask, has_dropout, False
        )
        features = load_neighbour_features(
            x, node, mask, head, heads, column, width, acc_dtype
        )
        signed = tl.where(score > 0, kept, -kept)[:, :, None]
        total += tl.abs(signed) * features
        positive += tl.maximum(signed, 0) * features
    result = tl.sum(total, 0)
    store_row_features(out, result, row, head, heads, column, width)
    if needs_grad:
        fraction = load_row(positive_share, row, head, heads, acc_dtype)
        jacobian = tl.sum(positive, 0) - fraction[:, None] * result
        jacobian *= 1 - negative_slope
        store_row_features(target_jacobian, jacobian, row, head, heads, column, width)


@triton.jit
def gat_backward_target(
    out,
    target_jacobian,
    grad_out,
    grad_dot_out,
    grad_target,
    pairs,
    width: tl.constexpr,
    acc_dtype: tl.constexpr,
    pairs_per_program: tl.constexpr,
    padded_width: tl.constexpr,
):
    """The gradient of target scores, and grad_out times the output for each head."""
    first = tl.program_id(0).to(tl.int64) * pairs_per_program
    pair = first + tl.arange(0, pairs_per_program)
    column = tl.arange(0, padded_width)
    index = pair[:, None] * width + column[None, :]
    mask = (pair < pairs)[:, None] & (column < width)[None, :]
    grad = tl.load(grad_out + index, mask=mask, other=0).to(acc_dtype)
    output = tl.load(out + index, mask=mask, other=0).to(acc_dtype)
    jacobian = tl.load(target_jacobian + index, mask=mask, other=0).to(acc_dtype)
    tl.store(grad_dot_out + pair, tl.sum(grad * output, 1), mask=pair < pairs)
    total = tl.sum(grad * jacobian, 1).to(grad_target.dtype.element_ty)
    tl.store(grad_target + pair, total, mask=pair < pairs)


@triton.jit
def gat_backward_source(
    indptr,
    indices,
    row_order,
    x,
    source,
    target,
    logsumexp,
    grad_out,
    grad_dot_out,
    grad_x,
    grad_source,
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
    """The gradients of x and of source scores, summed along outgoing edges."""
    row = tl.load(row_order + tl.program_id(0)).to(tl.int64)
    head = tl.program_id(1) * heads_per_program + tl.arange(0, heads_per_program)
    column = tl.arange(0, padded_width)
    begin = tl.load(indptr + row)
    end = tl.load(indptr + row + 1)
    dropout = (keep, positions, nnz, keep_scale)
    own = load_row(source, row, head, heads, acc_dtype)
    dot_total = tl.zeros([neighbours, heads_per_program], acc_dtype)
    total = tl.zeros([neighbours, heads_per_program, padded_width], acc_dtype)
    positive = tl.zeros([neighbours, heads_per_program, padded_width], acc_dtype)
    for entry in range(begin, end + 1, neighbours):
        position, node, valid = neighbour_nodes(
            indices, entry, end, row, num_loops, replaces_loops, neighbours
        )
        mask = valid & (head < heads)[None, :]
        score = load_neighbours(target, node, head, heads, mask, acc_dtype)
        score += own[None, :]
        lse = load_neighbours(logsumexp, node, head, heads, mask, acc_dtype)
        weight = tl.exp(_leaky_relu(score, score, negative_slope) - lse)
        weight = tl.where(mask, weight, 0)
        dot = load_neighbours(grad_dot_out, node, head, heads, mask, acc_dtype)
        dot_total += _leaky_relu(score, weight, negative_slope) * dot
        kept = dropped(
            weight, dropout, position, end, row, head, heads, mask, has_dropout, True
        )
        grad = load_neighbour_features(
            grad_out, node, mask, head, heads, column, width, acc_dtype
        )
        signed = tl.where(score > 0, kept, -kept)[:, :, None]
        total += tl.abs(signed) * grad
        positive += tl.maximum(signed, 0) * grad
    result = tl.sum(total, 0)
    store_row_features(grad_x, result, row, head, heads, column, width)
    own_x = load_row_features(x, row, head, heads, column, width, acc_dtype)
    grad_score = negative_slope * result + (1 - negative_slope) * tl.sum(positive, 0)
    grad = tl.sum(own_x * grad_score, 1) - tl.sum(dot_total, 0)
    store_row(grad_source, grad, row, head, heads)
