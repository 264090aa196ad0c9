"""Triton programs: batch norm + ReLU + dropout, bias + ReLU, forward and backward."""

from __future__ import annotations

import triton
import triton.language as tl

# The programs that cross bridges on NVIDIA cards: each takes a tile of one run.


@triton.jit
def hash32(bits):
    """A hash in which every bit of the input moves half of those of the output."""
    bits ^= bits >> 16
    bits *= 0x7FEB352D
    bits ^= bits >> 15
    bits *= 0x846CA68B
    return bits ^ (bits >> 16)


@triton.jit
def dropout_scale(row, column, seed, rate):
    """What dropout leaves of each number: nothing, or all of it scaled up."""
    line = hash32(row.to(tl.uint32) * 0x9E3779B1 + seed.to(tl.uint32))
    bits = hash32(line[:, None] ^ (column.to(tl.uint32) * 0x85EBCA6B)[None, :])
    drawn = (bits >> 8).to(tl.float32) * (1.0 / 16777216.0)
    return tl.where(drawn >= rate, 1 / (1 - rate), 0.0)


@triton.jit
def read(x, run, row, column, count, width, run_stride, row_stride):
    """The numbers of a tile, and which of them there are."""
    place = run.to(tl.int64) * run_stride + row.to(tl.int64)[:, None] * row_stride
    there = (row < count)[:, None] & (column < width)[None, :]
    found = tl.load(x + place + column[None, :], mask=there, other=0)
    return found.to(tl.float32), there


@triton.jit
def moments(
    x,
    offset,
    sums,
    count,
    width,
    run_stride,
    row_stride,
    early: tl.constexpr,
    rows: tl.constexpr,
    tile: tl.constexpr,
    block: tl.constexpr,
):
    """The mean of a block of rows, and the sum of squares around it."""
    part, run = tl.program_id(0), tl.program_id(1)
    column = tl.program_id(2) * block + tl.arange(0, block)
    inside = column < width
    # Sums are taken of what differs from the first row, which loses no digits.
    at = run.to(tl.int64) * run_stride + (part * rows).to(tl.int64) * row_stride
    added = tl.load(offset + run * width + column, mask=inside, other=0)
    usual = tl.load(x + at + column, mask=inside, other=0).to(tl.float32) + added
    if early:
        usual = tl.maximum(usual, 0)
    once = tl.zeros([tile, block], tl.float32)
    twice = tl.zeros([tile, block], tl.float32)
    for step in range(0, rows, tile):
        row = part * rows + step + tl.arange(0, tile)
        value, there = read(x, run, row, column, count, width, run_stride, row_stride)
        value += added[None, :]
        if early:
            value = tl.maximum(value, 0)
        apart = tl.where(there, value - usual[None, :], 0)
        once += apart
        twice += apart * apart
    size = tl.minimum(rows, count - part * rows).to(tl.float32)
    place = (run * tl.num_programs(0) + part).to(tl.int64) * 2 * width + column
    total = tl.sum(once, 0)
    around = tl.sum(twice, 0) - total * total / size
    tl.store(sums + place, usual + total / size, mask=inside)
    tl.store(sums + place + width, around, mask=inside)


@triton.jit
def forward(
    x,
    out,
    mean,
    spread,
    offset,
    gain,
    shift,
    rate,
    seed,
    count,
    width,
    run_stride,
    row_stride,
    early: tl.constexpr,
    late: tl.constexpr,
    tile: tl.constexpr,
    block: tl.constexpr,
):
    """Norm, ReLU and dropout of a tile."""
    run = tl.program_id(1)
    row = tl.program_id(0) * tile + tl.arange(0, tile)
    column = tl.program_id(2) * block + tl.arange(0, block)
    value, there = read(x, run, row, column, count, width, run_stride, row_stride)
    own, inside = run * width + column, column < width
    value += tl.load(offset + own, mask=inside, other=0)[None, :]
    if early:
        value = tl.maximum(value, 0)
    middle = tl.load(mean + own, mask=inside, other=0)
    times = tl.load(spread + own, mask=inside, other=0)
    times *= tl.load(gain + own, mask=inside, other=0)
    value = (value - middle[None, :]) * times[None, :]
    value += tl.load(shift + own, mask=inside, other=0)[None, :]
    if late:
        value = tl.maximum(value, 0)
    dropped = tl.load(rate + run)
    if dropped > 0:
        value *= dropout_scale(row, column, tl.load(seed + run), dropped)
    place = (run.to(tl.int64) * count + row)[:, None] * width + column[None, :]
    tl.store(out + place, value.to(out.dtype.element_ty), mask=there)


# The programs that go back over bridges on NVIDIA cards, with the slopes.


@triton.jit
def _grad_norm_output(
    x,
    slope,
    run,
    row,
    column,
    mean,
    spread,
    offset,
    gain,
    shift,
    rate,
    seed,
    count,
    width,
    run_stride,
    row_stride,
    slope_run_stride,
    slope_row_stride,
    early: tl.constexpr,
    late: tl.constexpr,
):
    """The slope of what the norm gave, the normed numbers, and what went into them."""
    raw, there = read(x, run, row, column, count, width, run_stride, row_stride)
    own, inside = run * width + column, column < width
    raw += tl.load(offset + own, mask=inside, other=0)[None, :]
    value = tl.maximum(raw, 0) if early else raw
    middle = tl.load(mean + own, mask=inside, other=0)
    times = tl.load(spread + own, mask=inside, other=0)
    normed = tl.where(there, (value - middle[None, :]) * times[None, :], 0)
    change, _ = read(
        slope, run, row, column, count, width, slope_run_stride, slope_row_stride
    )
    dropped = tl.load(rate + run)
    if dropped > 0:
        change *= dropout_scale(row, column, tl.load(seed + run), dropped)
    if late:
        scale = tl.load(gain + own, mask=inside, other=0)
        offset = tl.load(shift + own, mask=inside, other=0)
        above = normed * scale[None, :] + offset[None, :] > 0
        change = tl.where(above, change, 0)
    return change, normed, raw, there


@triton.jit
def backward_sums(
    x,
    slope,
    mean,
    spread,
    offset,
    gain,
    shift,
    rate,
    seed,
    sums,
    count,
    width,
    run_stride,
    row_stride,
    slope_run_stride,
    slope_row_stride,
    early: tl.constexpr,
    late: tl.constexpr,
    rows: tl.constexpr,
    tile: tl.constexpr,
    block: tl.constexpr,
):
    """Sums over a block of rows of the slope, and of it times the normed numbers."""
    part, run = tl.program_id(0), tl.program_id(1)
    column = tl.program_id(2) * block + tl.arange(0, block)
    once = tl.zeros([tile, block], tl.float32)
    twice = tl.zeros([tile, block], tl.float32)
    for step in range(0, rows, tile):
        row = part * rows + step + tl.arange(0, tile)
        change, normed, _, _ = _grad_norm_output(
            x,
            slope,
            run,
            row,
            column,
            mean,
            spread,
            offset,
            gain,
            shift,
            rate,
            seed,
            count,
            width,
            run_stride,
            row_stride,
            slope_run_stride,
            slope_row_stride,
            early,
            late,
        )
        once += change
        twice += change * normed
    place = (run * tl.num_programs(0) + part).to(tl.int64) * 2 * width + column
    tl.store(sums + place, tl.sum(once, 0), mask=column < width)
    tl.store(sums + place + width, tl.sum(twice, 0), mask=column < width)


@triton.jit
def backward(
    x,
    slope,
    mean,
    spread,
    offset,
    gain,
    shift,
    rate,
    seed,
    averages,
    out,
    through,
    count,
    width,
    run_stride,
    row_stride,
    slope_run_stride,
    slope_row_stride,
    out_run_stride,
    out_row_stride,
    early: tl.constexpr,
    late: tl.constexpr,
    tile: tl.constexpr,
    block: tl.constexpr,
):
    """The slope of what went into a tile."""
    run = tl.program_id(1)
    row = tl.program_id(0) * tile + tl.arange(0, tile)
    column = tl.program_id(2) * block + tl.arange(0, block)
    change, normed, raw, there = _grad_norm_output(
        x,
        slope,
        run,
        row,
        column,
        mean,
        spread,
        offset,
        gain,
        shift,
        rate,
        seed,
        count,
        width,
        run_stride,
        row_stride,
        slope_run_stride,
        slope_row_stride,
        early,
        late,
    )
    own, inside = run * width + column, column < width
    once = tl.load(averages + run * width + own, mask=inside, other=0)
    twice = tl.load(averages + run * width + own + width, mask=inside, other=0)
    times = tl.load(spread + own, mask=inside, other=0)
    times *= tl.load(gain + own, mask=inside, other=0)
    found = times[None, :] * (change - once[None, :] - normed * twice[None, :])
    if early:
        found = tl.where(raw > 0, found, 0)
    at = run.to(tl.int64) * out_run_stride + row.to(tl.int64) * out_row_stride
    place = at[:, None] + column[None, :]
    tl.store(out + place, found.to(out.dtype.element_ty), mask=there)
    part = (run * tl.num_programs(0) + tl.program_id(0)).to(tl.int64)
    total = tl.sum(tl.where(there, found, 0), 0)
    tl.store(through + part * width + column, total, mask=inside)


# The programs that cut sums on NVIDIA cards: each takes a tile of one run.


@triton.jit
def bias_relu(
    total,
    offset,
    count,
    width,
    run_stride,
    row_stride,
    tile: tl.constexpr,
    block: tl.constexpr,
):
    """relu of a tile and an offset, in place."""
    run = tl.program_id(1)
    row = tl.program_id(0) * tile + tl.arange(0, tile)
    column = tl.program_id(2) * block + tl.arange(0, block)
    value, there = read(total, run, row, column, count, width, run_stride, row_stride)
    added = tl.load(offset + run * width + column, mask=column < width, other=0)
    value = tl.maximum(value + added.to(tl.float32)[None, :], 0)
    at = run.to(tl.int64) * run_stride + row.to(tl.int64) * row_stride
    place = at[:, None] + column[None, :]
    tl.store(total + place, value.to(total.dtype.element_ty), mask=there)


@triton.jit
def bias_relu_backward(
    total,
    slope,
    out,
    sums,
    count,
    width,
    run_stride,
    row_stride,
    slope_run_stride,
    slope_row_stride,
    rows: tl.constexpr,
    tile: tl.constexpr,
    block: tl.constexpr,
):
    """The slopes of a block of rows where they were above 0, and their sums."""
    part, run = tl.program_id(0), tl.program_id(1)
    column = tl.program_id(2) * block + tl.arange(0, block)
    total_slope = tl.zeros([tile, block], tl.float32)
    for step in range(0, rows, tile):
        row = part * rows + step + tl.arange(0, tile)
        value, there = read(
            total, run, row, column, count, width, run_stride, row_stride
        )
        change, _ = read(
            slope, run, row, column, count, width, slope_run_stride, slope_row_stride
        )
        change = tl.where(value > 0, change, 0)
        at = run.to(tl.int64) * run_stride + row.to(tl.int64) * row_stride
        place = at[:, None] + column[None, :]
        tl.store(out + place, change.to(out.dtype.element_ty), mask=there)
        total_slope += change
    place = (run * tl.num_programs(0) + part).to(tl.int64) * width + column
    tl.store(sums + place, tl.sum(total_slope, 0), mask=column < width)
