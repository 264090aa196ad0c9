"""Triton programs: SpMM, normalised SpMM, AdamW, SpMM fused with AdamW."""

from __future__ import annotations

import triton
import triton.language as tl

# The Triton programs of a card: sums of rows, and the step of AdamW.


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
def spmm(
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
    """A row of the product, some columns of it."""
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
def _adamw_update(
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
def spmm_adamw(
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
    """A row of the product as a gradient, and the step that follows it."""
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
    _adamw_update(
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
def adamw(
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
    runs,
    width,
    beta1: tl.constexpr,
    beta2: tl.constexpr,
    epsilon: tl.constexpr,
    halved: tl.constexpr,
    block: tl.constexpr,
):
    """A step along gradients that are there."""
    line = tl.program_id(0)
    column = tl.program_id(1) * block + tl.arange(0, block)
    inside = column < width
    place = line.to(tl.int64) * width + column
    slope = tl.load(gradient + place, mask=inside).to(tl.float32)
    _adamw_update(
        place,
        inside,
        line % runs + tl.zeros_like(column),
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


# Propagation on NVIDIA cards: one Triton kernel, many narrow rows to a program.


@triton.jit
def _propagate(
    starts,
    columns,
    values,
    order,
    dense,
    scale,
    added,
    keep,
    start,
    out,
    count,
    width,
    stride,
    start_stride,
    sums: tl.constexpr,
    weighted: tl.constexpr,
    scaled: tl.constexpr,
    shared: tl.constexpr,
    begun: tl.constexpr,
    rows: tl.constexpr,
    neighbours: tl.constexpr,
    block: tl.constexpr,
):
    place = tl.program_id(0) * rows + tl.arange(0, rows)
    there = place < count
    row = tl.load(order + place, mask=there, other=0).to(tl.int64)
    begin = tl.load(starts + row, mask=there, other=0)
    end = tl.load(starts + row + 1, mask=there, other=0)
    end = tl.where(there, end, begin)
    column = tl.program_id(1) * block + tl.arange(0, block)
    inside = column < width
    total = tl.zeros([rows, block], sums)
    longest = tl.max(end - begin, 0)
    for step in range(0, longest, neighbours):
        at = begin[:, None] + step + tl.arange(0, neighbours)[None, :]
        real = at < end[:, None]
        target = tl.load(columns + at, mask=real, other=0).to(tl.int64)
        source = target[:, :, None] * stride + column[None, None, :]
        read = real[:, :, None] & inside[None, None, :]
        picked = tl.load(dense + source, mask=read, other=0).to(sums)
        if not scaled:
            ends = tl.load(scale + target, mask=real, other=0).to(sums)
            picked *= ends[:, :, None]
        if weighted:
            weight = tl.load(values + at, mask=real, other=0).to(sums)
            picked *= weight[:, :, None]
        total += tl.sum(picked, 1)
    write = there[:, None] & inside[None, :]
    factor = tl.load(scale + row, mask=there, other=0).to(sums)
    loop = tl.load(added + row, mask=there, other=0).to(sums)
    if not scaled:
        loop *= factor
    own = dense + row[:, None] * stride + column[None, :]
    total += loop[:, None] * tl.load(own, mask=write, other=0).to(sums)
    total *= factor[:, None]
    if shared:
        share = tl.load(keep + column, mask=inside, other=1)
        total *= share.to(sums)[None, :]
    if begun:
        first = start + row[:, None] * start_stride + column[None, :]
        total += tl.load(first, mask=write, other=0).to(sums)
    here = out + row[:, None] * width + column[None, :]
    tl.store(here, total.to(out.dtype.element_ty), mask=write)
