"""The programs that cut sums on NVIDIA cards: each takes a tile of one run."""

import triton
import triton.language as tl

from unalike.kernels.bridges.programs import read


@triton.jit
def rectify(
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
def rectify_back(
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
