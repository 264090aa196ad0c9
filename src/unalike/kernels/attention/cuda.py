"""Attention on NVIDIA cards: a Triton program per row and some heads, no atomics.

Every row has one loop more than it lists, after its last entry; loops it lists do not
count. A row's sum is taken in a fixed order, so the same input gives the same bits.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from unalike.kernels.attention import LEAK
from unalike.kernels.rows import Rows

TILE = 1024
"""Numbers a program holds while it sums: neighbours times heads times columns."""
COLUMNS = 128
"""Columns that the heads of a program have together, where one head has fewer."""


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
    place = (node[:, None] * heads + head[None, :])[:, :, None] * width
    there = real & (head < heads)[None, :]
    there = there[:, :, None] & (column < width)[None, None, :]
    place += column[None, None, :]
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
def _attend(
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
def _to_target(
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
def _to_source(
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


def attend(
    rows: Rows,
    x: Float[Tensor, "nodes heads width"],
    source: Float[Tensor, "nodes heads"],
    target: Float[Tensor, "nodes heads"],
) -> tuple[Float[Tensor, "nodes heads width"], Float[Tensor, "nodes heads"]]:
    """What nodes gather along edges that enter them, and the logs of weights' sums."""
    read = [one.contiguous() for one in (x, source, target)]
    kind = torch.promote_types(x.dtype, torch.float32)
    out = torch.empty_like(read[0])
    log_sums = torch.empty_like(read[1], dtype=kind)
    _launch(_attend, rows.transposed, *read, out, log_sums)
    return out, log_sums


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
    read = [one.contiguous() for one in (x, source, target)]
    slope, mean = slope.contiguous(), torch.empty_like(log_sums)
    to_x, to_source, to_target = (torch.empty_like(one) for one in read)
    _launch(_to_target, rows.transposed, *read, out, log_sums, slope, mean, to_target)
    _launch(_to_source, rows, *read, log_sums, slope, mean, to_x, to_source)
    return to_x, to_source, to_target


def _launch(kernel: Any, rows: Rows, x: Tensor, *others: Tensor) -> None:
    """Run a kernel over all rows and heads, if there are any."""
    nodes, heads, width = x.shape
    block = triton.next_power_of_2(width)
    many = min(triton.next_power_of_2(heads), max(1, COLUMNS // block))
    if x.numel():
        kernel[nodes, triton.cdiv(heads, many)](
            rows.starts,
            rows.columns,
            rows.longest_first,
            x,
            *others,
            heads,
            width,
            LEAK,
            tl.float64 if x.dtype == torch.float64 else tl.float32,
            many,
            block,
            max(1, TILE // (many * block)),
            num_warps=1,
        )
