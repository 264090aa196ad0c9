"""The programs of attention on NVIDIA cards: each takes a row and some of its heads.

Every row has one loop more than it lists, after its last entry; loops it lists do not
count.
"""

import triton
import triton.language as tl


@triton.jit
def _bent(score, by, leak: tl.constexpr):
    return tl.where(score > 0, by, leak * by)


@triton.jit
def _nodes(columns, entry, end, row, neighbours: tl.constexpr):
    at = entry + tl.arange(0, neighbours)
    node = tl.load(columns + at, mask=at < end, other=0).to(tl.int64)
    real = ((at < end) & (node != row)) | (at == end)
    return tl.where(at < end, node, row), real[:, None]


@triton.jit
def _pick(array, node, head, heads, sums: tl.constexpr):
    place = node[:, None] * heads + head[None, :]
    return tl.load(array + place, mask=(head < heads)[None, :], other=0).to(sums)


@triton.jit
def _pick_wide(array, node, real, head, heads, column, width, sums: tl.constexpr):
    beside = node[:, None] * heads + head[None, :]
    place = beside[:, :, None] * width + column[None, None, :]
    there = real & (head < heads)[None, :]
    there = there[:, :, None] & (column < width)[None, None, :]
    return tl.load(array + place, mask=there, other=0).to(sums)


@triton.jit
def _own(array, row, head, heads, sums: tl.constexpr):
    return tl.load(array + row * heads + head, mask=head < heads, other=0).to(sums)


@triton.jit
def _own_wide(array, row, head, heads, column, width, sums: tl.constexpr):
    place = (row * heads + head)[:, None] * width + column[None, :]
    there = (head < heads)[:, None] & (column < width)[None, :]
    return tl.load(array + place, mask=there, other=0).to(sums)


@triton.jit
def _keep(array, found, row, head, heads):
    found = found.to(array.dtype.element_ty)
    tl.store(array + row * heads + head, found, mask=head < heads)


@triton.jit
def _keep_wide(array, found, row, head, heads, column, width):
    place = (row * heads + head)[:, None] * width + column[None, :]
    there = (head < heads)[:, None] & (column < width)[None, :]
    tl.store(array + place, found.to(array.dtype.element_ty), mask=there)


@triton.jit
def attend(
    starts,
    columns,
    order,
    x,
    source,
    target,
    out,
    log_sums,
    heads,
    width,
    leak: tl.constexpr,
    sums: tl.constexpr,
    many: tl.constexpr,
    block: tl.constexpr,
    neighbours: tl.constexpr,
):
    """What a node gathers along the edges that enter it."""
    row = tl.load(order + tl.program_id(0)).to(tl.int64)
    head = tl.program_id(1) * many + tl.arange(0, many)
    column = tl.arange(0, block)
    begin = tl.load(starts + row)
    end = tl.load(starts + row + 1)
    shift = _own(target, row, head, heads, sums)
    highest = _own(source, row, head, heads, sums)
    for entry in range(begin, end, neighbours):
        node, _ = _nodes(columns, entry, end, row, neighbours)
        score = _pick(source, node, head, heads, sums)
        highest = tl.maximum(highest, tl.max(score, 0))
    # Bending keeps the order, so that the highest source has the highest score.
    highest += shift
    highest = _bent(highest, highest, leak)
    total = tl.zeros([many], sums)
    gathered = tl.zeros([many, block], sums)
    for entry in range(begin, end + 1, neighbours):
        node, real = _nodes(columns, entry, end, row, neighbours)
        score = _pick(source, node, head, heads, sums) + shift[None, :]
        weight = tl.exp(_bent(score, score, leak) - highest[None, :])
        weight = tl.where(real, weight, 0)
        picked = _pick_wide(x, node, real, head, heads, column, width, sums)
        total += tl.sum(weight, 0)
        gathered += tl.sum(weight[:, :, None] * picked, 0)
    _keep(log_sums, highest + tl.log(total), row, head, heads)
    _keep_wide(out, gathered / total[:, None], row, head, heads, column, width)


@triton.jit
def to_target(
    starts,
    columns,
    order,
    x,
    source,
    target,
    out,
    log_sums,
    slope,
    mean,
    to_target,
    heads,
    width,
    leak: tl.constexpr,
    sums: tl.constexpr,
    many: tl.constexpr,
    block: tl.constexpr,
    neighbours: tl.constexpr,
):
    """The slope of a node's target, along the edges that enter it."""
    row = tl.load(order + tl.program_id(0)).to(tl.int64)
    head = tl.program_id(1) * many + tl.arange(0, many)
    column = tl.arange(0, block)
    begin = tl.load(starts + row)
    end = tl.load(starts + row + 1)
    shift = _own(target, row, head, heads, sums)
    log_sum = _own(log_sums, row, head, heads, sums)
    own = _own_wide(slope, row, head, heads, column, width, sums)
    gathered = _own_wide(out, row, head, heads, column, width, sums)
    middle = tl.sum(own * gathered, 1)
    total = tl.zeros([many], sums)
    for entry in range(begin, end + 1, neighbours):
        node, real = _nodes(columns, entry, end, row, neighbours)
        score = _pick(source, node, head, heads, sums) + shift[None, :]
        weight = tl.exp(_bent(score, score, leak) - log_sum[None, :])
        picked = _pick_wide(x, node, real, head, heads, column, width, sums)
        pull = tl.sum(own[None, :, :] * picked, 2) - middle[None, :]
        total += tl.sum(tl.where(real, _bent(score, weight * pull, leak), 0), 0)
    _keep(mean, middle, row, head, heads)
    _keep(to_target, total, row, head, heads)


@triton.jit
def to_source(
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
    width,
    leak: tl.constexpr,
    sums: tl.constexpr,
    many: tl.constexpr,
    block: tl.constexpr,
    neighbours: tl.constexpr,
):
    """The slopes of a node's x and source, along the edges that leave it."""
    row = tl.load(order + tl.program_id(0)).to(tl.int64)
    head = tl.program_id(1) * many + tl.arange(0, many)
    column = tl.arange(0, block)
    begin = tl.load(starts + row)
    end = tl.load(starts + row + 1)
    shift = _own(source, row, head, heads, sums)
    own = _own_wide(x, row, head, heads, column, width, sums)
    total = tl.zeros([many], sums)
    gathered = tl.zeros([many, block], sums)
    for entry in range(begin, end + 1, neighbours):
        node, real = _nodes(columns, entry, end, row, neighbours)
        score = _pick(target, node, head, heads, sums) + shift[None, :]
        log_sum = _pick(log_sums, node, head, heads, sums)
        weight = tl.exp(_bent(score, score, leak) - log_sum)
        weight = tl.where(real, weight, 0)
        picked = _pick_wide(slope, node, real, head, heads, column, width, sums)
        pull = tl.sum(own[None, :, :] * picked, 2)
        pull -= _pick(mean, node, head, heads, sums)
        total += tl.sum(_bent(score, weight * pull, leak), 0)
        gathered += tl.sum(weight[:, :, None] * picked, 0)
    _keep(to_source, total, row, head, heads)
    _keep_wide(to_x, gathered, row, head, heads, column, width)
