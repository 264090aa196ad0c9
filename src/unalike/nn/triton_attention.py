"""Triton programs: GAT forward and backward."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _leaky_relu(score, by, leak: tl.constexpr):
    return tl.where(score > 0, by, leak * by)


@triton.jit
def _nodes(columns, entry, end, row, neighbours: tl.constexpr):
    at = entry + tl.arange(0, neighbours)
    node = tl.load(columns + at, mask=at < end, other=0).to(tl.int64)
    real = ((at < end) & (node != row)) | (at == end)
    return tl.where(at < end, node, row), real[:, None]


@triton.jit
def _load_neighbours(array, node, head, heads, there, sums: tl.constexpr):
    place = node[:, None] * heads + head[None, :]
    return tl.load(array + place, mask=there, other=0).to(sums)


@triton.jit
def _pick_wide(
    array, node, there, head, heads, column, width: tl.constexpr, sums: tl.constexpr
):
    beside = (head * width)[:, None] + column[None, :]
    place = (node * (heads * width))[:, None, None] + beside[None, :, :]
    there = there[:, :, None] & (column < width)[None, None, :]
    return tl.load(array + place, mask=there, other=0).to(sums)


@triton.jit
def _load_row(array, row, head, heads, sums: tl.constexpr):
    return tl.load(array + row * heads + head, mask=head < heads, other=0).to(sums)


@triton.jit
def _own_wide(array, row, head, heads, column, width: tl.constexpr, sums: tl.constexpr):
    place = row * (heads * width) + (head * width)[:, None] + column[None, :]
    there = (head < heads)[:, None] & (column < width)[None, :]
    return tl.load(array + place, mask=there, other=0).to(sums)


@triton.jit
def _store_row(array, found, row, head, heads):
    found = found.to(array.dtype.element_ty)
    tl.store(array + row * heads + head, found, mask=head < heads)


@triton.jit
def _keep_wide(array, found, row, head, heads, column, width: tl.constexpr):
    place = row * (heads * width) + (head * width)[:, None] + column[None, :]
    there = (head < heads)[:, None] & (column < width)[None, :]
    tl.store(array + place, found.to(array.dtype.element_ty), mask=there)


@triton.jit
def softmax_stats(
    starts,
    columns,
    order,
    source,
    target,
    log_sums,
    share,
    heads,
    leak: tl.constexpr,
    sums: tl.constexpr,
    many: tl.constexpr,
    neighbours: tl.constexpr,
):
    """The log of the sum of a node's weights; the share of those of scores above 0."""
    row = tl.load(order + tl.program_id(0)).to(tl.int64)
    head = tl.program_id(1) * many + tl.arange(0, many)
    begin = tl.load(starts + row)
    end = tl.load(starts + row + 1)
    shift = _load_row(target, row, head, heads, sums)
    own = _load_row(source, row, head, heads, sums) + shift
    highest = _leaky_relu(own, own, leak)[None, :] + tl.zeros([neighbours, many], sums)
    total = tl.zeros([neighbours, many], sums)
    positive = tl.zeros([neighbours, many], sums)
    for entry in range(begin, end + 1, neighbours):
        node, real = _nodes(columns, entry, end, row, neighbours)
        there = real & (head < heads)[None, :]
        score = (
            _load_neighbours(source, node, head, heads, there, sums) + shift[None, :]
        )
        score = tl.where(real, score, float("-inf"))
        level = _leaky_relu(score, score, leak)
        higher = tl.maximum(highest, level)
        fade = tl.exp(highest - higher)
        weight = tl.exp(level - higher)
        total = total * fade + weight
        positive = positive * fade + tl.where(score > 0, weight, 0)
        highest = higher
    top = tl.max(highest, 0)
    fade = tl.exp(highest - top[None, :])
    total = tl.sum(total * fade, 0)
    positive = tl.sum(positive * fade, 0)
    _store_row(log_sums, top + tl.log(total), row, head, heads)
    _store_row(share, positive / total, row, head, heads)


@triton.jit
def gat_forward(
    starts,
    columns,
    order,
    x,
    source,
    target,
    log_sums,
    share,
    out,
    lean,
    heads,
    width: tl.constexpr,
    leak: tl.constexpr,
    sums: tl.constexpr,
    learning: tl.constexpr,
    many: tl.constexpr,
    span: tl.constexpr,
    neighbours: tl.constexpr,
):
    """What a node gathers along the edges that enter it."""
    row = tl.load(order + tl.program_id(0)).to(tl.int64)
    head = tl.program_id(1) * many + tl.arange(0, many)
    column = tl.arange(0, span)
    begin = tl.load(starts + row)
    end = tl.load(starts + row + 1)
    shift = _load_row(target, row, head, heads, sums)
    log_sum = _load_row(log_sums, row, head, heads, sums)
    gathered = tl.zeros([neighbours, many, span], sums)
    positive = tl.zeros([neighbours, many, span], sums)
    for entry in range(begin, end + 1, neighbours):
        node, real = _nodes(columns, entry, end, row, neighbours)
        there = real & (head < heads)[None, :]
        score = (
            _load_neighbours(source, node, head, heads, there, sums) + shift[None, :]
        )
        weight = tl.exp(_leaky_relu(score, score, leak) - log_sum[None, :])
        weight = tl.where(there, weight, 0)
        picked = _pick_wide(x, node, there, head, heads, column, width, sums)
        signed = tl.where(score > 0, weight, -weight)[:, :, None]
        gathered += tl.abs(signed) * picked
        positive += tl.maximum(signed, 0) * picked
    found = tl.sum(gathered, 0)
    _keep_wide(out, found, row, head, heads, column, width)
    if learning:
        part = _load_row(share, row, head, heads, sums)
        leaning = (1 - leak) * (tl.sum(positive, 0) - part[:, None] * found)
        _keep_wide(lean, leaning, row, head, heads, column, width)


@triton.jit
def grad_target(
    out,
    lean,
    slope,
    mean,
    to_target,
    pairs,
    width: tl.constexpr,
    sums: tl.constexpr,
    many: tl.constexpr,
    span: tl.constexpr,
):
    """The slopes of targets, and what the slopes of weights have in common."""
    pair = tl.program_id(0).to(tl.int64) * many + tl.arange(0, many)
    column = tl.arange(0, span)
    place = pair[:, None] * width + column[None, :]
    there = (pair < pairs)[:, None] & (column < width)[None, :]
    pull = tl.load(slope + place, mask=there, other=0).to(sums)
    gathered = tl.load(out + place, mask=there, other=0).to(sums)
    leaning = tl.load(lean + place, mask=there, other=0).to(sums)
    tl.store(mean + pair, tl.sum(pull * gathered, 1), mask=pair < pairs)
    total = tl.sum(pull * leaning, 1).to(to_target.dtype.element_ty)
    tl.store(to_target + pair, total, mask=pair < pairs)


@triton.jit
def grad_source(
    starts,
    columns,
    order,
    x,
    source,
    target,
    log_sums,
    slope,
    mean,
    to_x,
    to_source,
    heads,
    width: tl.constexpr,
    leak: tl.constexpr,
    sums: tl.constexpr,
    many: tl.constexpr,
    span: tl.constexpr,
    neighbours: tl.constexpr,
):
    """The slopes of a node's x and source, along the edges that leave it."""
    row = tl.load(order + tl.program_id(0)).to(tl.int64)
    head = tl.program_id(1) * many + tl.arange(0, many)
    column = tl.arange(0, span)
    begin = tl.load(starts + row)
    end = tl.load(starts + row + 1)
    shift = _load_row(source, row, head, heads, sums)
    missed = tl.zeros([neighbours, many], sums)
    gathered = tl.zeros([neighbours, many, span], sums)
    positive = tl.zeros([neighbours, many, span], sums)
    for entry in range(begin, end + 1, neighbours):
        node, real = _nodes(columns, entry, end, row, neighbours)
        there = real & (head < heads)[None, :]
        score = (
            _load_neighbours(target, node, head, heads, there, sums) + shift[None, :]
        )
        log_sum = _load_neighbours(log_sums, node, head, heads, there, sums)
        weight = tl.exp(_leaky_relu(score, score, leak) - log_sum)
        weight = tl.where(there, weight, 0)
        middle = _load_neighbours(mean, node, head, heads, there, sums)
        missed += _leaky_relu(score, weight, leak) * middle
        picked = _pick_wide(slope, node, there, head, heads, column, width, sums)
        signed = tl.where(score > 0, weight, -weight)[:, :, None]
        gathered += tl.abs(signed) * picked
        positive += tl.maximum(signed, 0) * picked
    found = tl.sum(gathered, 0)
    _keep_wide(to_x, found, row, head, heads, column, width)
    own = _own_wide(x, row, head, heads, column, width, sums)
    bent = leak * found + (1 - leak) * tl.sum(positive, 0)
    _store_row(to_source, tl.sum(own * bent, 1) - tl.sum(missed, 0), row, head, heads)
