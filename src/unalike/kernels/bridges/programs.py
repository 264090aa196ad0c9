"""The programs that cross bridges on NVIDIA cards: each takes a tile of one run."""

import triton
import triton.language as tl


@triton.jit
def _mixed(bits):
    """A hash in which every bit of the input moves half of those of the output."""
    bits ^= bits >> 16
    bits *= 0x7FEB352D
    bits ^= bits >> 15
    bits *= 0x846CA68B
    return bits ^ (bits >> 16)


@triton.jit
def kept(row, column, seed, rate):
    """What dropout leaves of each number: nothing, or all of it scaled up."""
    line = _mixed(row.to(tl.uint32) * 0x9E3779B1 + seed.to(tl.uint32))
    bits = _mixed(line[:, None] ^ (column.to(tl.uint32) * 0x85EBCA6B)[None, :])
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
def cross(
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
        value *= kept(row, column, tl.load(seed + run), dropped)
    place = (run.to(tl.int64) * count + row)[:, None] * width + column[None, :]
    tl.store(out + place, value.to(out.dtype.element_ty), mask=there)
