"""The kernels on NVIDIA cards: one Triton program per row, no atomics.

A row's sum is taken in a fixed order, so the same input gives the same bits.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from unalike.kernels.crowded import filled
from unalike.kernels.cuda_propagation import propagate as propagate
from unalike.kernels.plain import induced as induced
from unalike.kernels.plain import take as take
from unalike.kernels.rows import Rows
from unalike.kernels.update import BETA1, BETA2, EPSILON, Step, Weights

TILE = 2048
"""Numbers a program holds while it sums: neighbours times columns."""


@triton.jit
def _sum_row(
    row,
    begin_at,
    columns,
    values,
    dense,
    width,
    column,
    inside,
    sums: tl.constexpr,
    weighted: tl.constexpr,
    block: tl.constexpr,
    neighbours: tl.constexpr,
):
    begin = tl.load(begin_at + row)
    end = tl.load(begin_at + row + 1)
    total = tl.zeros([block], sums)
    for entry in range(begin, end, neighbours):
        at = entry + tl.arange(0, neighbours)
        real = at < end
        target = tl.load(columns + at, mask=real, other=0).to(tl.int64)
        place = target[:, None] * width + column[None, :]
        read = real[:, None] & inside[None, :]
        picked = tl.load(dense + place, mask=read, other=0).to(sums)
        if weighted:
            picked *= tl.load(values + at, mask=real, other=0)[:, None]
        total += tl.sum(picked, 0)
    return total


@triton.jit
def _gather(
    starts,
    columns,
    values,
    order,
    dense,
    offset,
    out,
    width,
    sums: tl.constexpr,
    shifted: tl.constexpr,
    weighted: tl.constexpr,
    block: tl.constexpr,
    neighbours: tl.constexpr,
):
    row = tl.load(order + tl.program_id(0)).to(tl.int64)
    column = tl.program_id(1) * block + tl.arange(0, block)
    inside = column < width
    total = _sum_row(
        row,
        starts,
        columns,
        values,
        dense,
        width,
        column,
        inside,
        sums,
        weighted,
        block,
        neighbours,
    )
    if shifted:
        total += tl.load(offset + column, mask=inside, other=0).to(sums)
    tl.store(out + row * width + column, total.to(out.dtype.element_ty), mask=inside)


@triton.jit
def _move(
    place,
    inside,
    run,
    slope,
    now,
    first,
    second,
    best,
    half,
    rate,
    decay,
    improved,
    scales,
    beta1: tl.constexpr,
    beta2: tl.constexpr,
    epsilon: tl.constexpr,
    halved: tl.constexpr,
):
    weight = tl.load(now + place, mask=inside)
    better = tl.load(improved + run, mask=inside, other=0) != 0
    tl.store(best + place, weight, mask=inside & better)
    mean = beta1 * tl.load(first + place, mask=inside) + (1 - beta1) * slope
    square = beta2 * tl.load(second + place, mask=inside) + (1 - beta2) * slope * slope
    tl.store(first + place, mean, mask=inside)
    tl.store(second + place, square, mask=inside)
    pace = tl.load(rate + run, mask=inside)
    shrink = 1 - pace * tl.load(decay + run, mask=inside)
    spread = tl.sqrt(square * tl.load(scales + 1)) + epsilon
    weight = shrink * weight - pace * tl.load(scales) * mean / spread
    tl.store(now + place, weight, mask=inside)
    if halved:
        tl.store(half + place, weight.to(tl.bfloat16), mask=inside)


@triton.jit
def _gather_adamw(
    starts,
    columns,
    values,
    order,
    gradient,
    now,
    first,
    second,
    best,
    half,
    rate,
    decay,
    improved,
    scales,
    width,
    run_width,
    beta1: tl.constexpr,
    beta2: tl.constexpr,
    epsilon: tl.constexpr,
    halved: tl.constexpr,
    weighted: tl.constexpr,
    block: tl.constexpr,
    neighbours: tl.constexpr,
):
    row = tl.load(order + tl.program_id(0)).to(tl.int64)
    column = tl.program_id(1) * block + tl.arange(0, block)
    inside = column < width
    slope = _sum_row(
        row,
        starts,
        columns,
        values,
        gradient,
        width,
        column,
        inside,
        tl.float32,
        weighted,
        block,
        neighbours,
    )
    _move(
        row * width + column,
        inside,
        column // run_width,
        slope,
        now,
        first,
        second,
        best,
        half,
        rate,
        decay,
        improved,
        scales,
        beta1,
        beta2,
        epsilon,
        halved,
    )


@triton.jit
def _adamw(
    gradient,
    now,
    first,
    second,
    best,
    half,
    rate,
    decay,
    improved,
    scales,
    size,
    runs,
    run_width,
    beta1: tl.constexpr,
    beta2: tl.constexpr,
    epsilon: tl.constexpr,
    halved: tl.constexpr,
    block: tl.constexpr,
):
    place = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    inside = place < size
    slope = tl.load(gradient + place, mask=inside).to(tl.float32)
    _move(
        place,
        inside,
        (place // run_width) % runs,
        slope,
        now,
        first,
        second,
        best,
        half,
        rate,
        decay,
        improved,
        scales,
        beta1,
        beta2,
        epsilon,
        halved,
    )


def gather(
    rows: Rows,
    dense: Float[Tensor, "columns width"],
    offset: Float[Tensor, " width"] | None = None,
    out: Float[Tensor, "rows width"] | None = None,
) -> Float[Tensor, "rows width"]:
    """For each row the sum of the dense rows its columns name, times their values."""
    count, width = len(rows.starts) - 1, dense.shape[1]
    if out is None:
        out = torch.empty(count, width, device=dense.device, dtype=dense.dtype)
    if (matrix := filled(rows, dense)) is not None:
        if offset is None:
            return torch.mm(matrix, dense, out=out)
        return torch.addmm(offset.to(dense.dtype), matrix, dense, out=out)
    if out.numel():
        grid, shape = _shape(count, width)
        _gather[grid](
            *_read(rows),
            dense.contiguous(),
            out if offset is None else offset.contiguous(),
            out,
            width,
            tl.float64 if dense.dtype == torch.float64 else tl.float32,
            offset is not None,
            *_flag(rows),
            *shape,
            num_warps=1,
        )
    return out


def adamw(
    weights: Weights, gradient: Float[Tensor, "rows runs width"], step: Step
) -> None:
    """Keep the best weights, then one step of AdamW, in one pass over memory."""
    _, runs, width = weights.now.shape
    size = weights.now.numel()
    if size:
        _adamw[(triton.cdiv(size, TILE),)](
            gradient.contiguous(),
            *_state(weights, step),
            size,
            runs,
            width,
            BETA1,
            BETA2,
            EPSILON,
            weights.half is not None,
            TILE,
        )


def gather_adamw(
    weights: Weights,
    rows: Rows,
    gradient: Float[Tensor, "sources runs width"],
    step: Step,
) -> None:
    """A step of AdamW whose gradient is a gather of what reaches each row."""
    count, _, run_width = weights.now.shape
    width = gradient[0].numel()
    flat = gradient.flatten(1)
    if (matrix := filled(rows, flat)) is not None:
        slope = torch.mm(matrix, flat, out_dtype=torch.float32)
        adamw(weights, slope.view_as(weights.now), step)
    elif weights.now.numel():
        grid, shape = _shape(count, width)
        _gather_adamw[grid](
            *_read(rows),
            gradient.contiguous(),
            *_state(weights, step),
            width,
            run_width,
            BETA1,
            BETA2,
            EPSILON,
            weights.half is not None,
            *_flag(rows),
            *shape,
            num_warps=1,
        )


def _shape(rows: int, width: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """The grid, and how many columns and neighbours a program takes at a time."""
    block = min(128, max(16, triton.next_power_of_2(width)))
    return (rows, triton.cdiv(width, block)), (block, TILE // block)


def _read(rows: Rows) -> tuple[Tensor, ...]:
    values = rows.starts if rows.values is None else rows.values
    return rows.starts, rows.columns, values, rows.longest_first


def _flag(rows: Rows) -> tuple[bool]:
    return (rows.values is not None,)


def _state(weights: Weights, step: Step) -> tuple[Tensor, ...]:
    half = weights.now if weights.half is None else weights.half
    return (
        weights.now,
        weights.first,
        weights.second,
        weights.best,
        half,
        step.rate,
        step.decay,
        step.improved,
        step.scales,
    )
