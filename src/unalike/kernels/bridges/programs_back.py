"""The programs that go back over bridges on NVIDIA cards, with the slopes."""

import triton
import triton.language as tl

from unalike.kernels.bridges.programs import kept, read


@triton.jit
def _slope(
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
        change *= kept(row, column, tl.load(seed + run), dropped)
    if late:
        scale = tl.load(gain + own, mask=inside, other=0)
        offset = tl.load(shift + own, mask=inside, other=0)
        above = normed * scale[None, :] + offset[None, :] > 0
        change = tl.where(above, change, 0)
    return change, normed, raw, there


@triton.jit
def sums_back(
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
        change, normed, _, _ = _slope(
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
def cross_back(
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
    change, normed, raw, there = _slope(
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
