"""Bridges on NVIDIA cards: batch norm, ReLU and dropout in one pass each way.

What is dropped is drawn from a seed, a row and a column, so that the backward pass
draws the same again and nothing is kept of it. No atomics: the same bits each time.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from unalike.kernels.bridge import Norm, Relu

TILE = 4096
"""Numbers a program holds at a time: rows times columns."""
ROWS = 1024
"""Rows that a program takes one tile after the other."""


@triton.jit
def _mixed(bits):
    """A hash in which every bit of the input moves half of those of the output."""
    bits ^= bits >> 16
    bits *= 0x7FEB352D
    bits ^= bits >> 15
    bits *= 0x846CA68B
    return bits ^ (bits >> 16)


@triton.jit
def _kept(row, column, seed, rate):
    """What dropout leaves of each number: nothing, or all of it scaled up."""
    line = _mixed(row.to(tl.uint32) * 0x9E3779B1 + seed.to(tl.uint32))
    bits = _mixed(line[:, None] ^ (column.to(tl.uint32) * 0x85EBCA6B)[None, :])
    drawn = (bits >> 8).to(tl.float32) * (1.0 / 16777216.0)
    return tl.where(drawn >= rate, 1 / (1 - rate), 0.0)


@triton.jit
def _tile(x, run, row, column, count, width, run_stride, row_stride):
    place = run.to(tl.int64) * run_stride + row.to(tl.int64)[:, None] * row_stride
    there = (row < count)[:, None] & (column < width)[None, :]
    found = tl.load(x + place + column[None, :], mask=there, other=0)
    return found.to(tl.float32), there


@triton.jit
def _moments(
    x,
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
    part, run = tl.program_id(0), tl.program_id(1)
    column = tl.program_id(2) * block + tl.arange(0, block)
    inside = column < width
    # Sums are taken of what differs from the first row, which loses no digits.
    at = run.to(tl.int64) * run_stride + (part * rows).to(tl.int64) * row_stride
    usual = tl.load(x + at + column, mask=inside, other=0).to(tl.float32)
    if early:
        usual = tl.maximum(usual, 0)
    once = tl.zeros([block], tl.float32)
    twice = tl.zeros([block], tl.float32)
    for step in range(0, rows, tile):
        row = part * rows + step + tl.arange(0, tile)
        value, there = _tile(x, run, row, column, count, width, run_stride, row_stride)
        if early:
            value = tl.maximum(value, 0)
        apart = tl.where(there, value - usual[None, :], 0)
        once += tl.sum(apart, 0)
        twice += tl.sum(apart * apart, 0)
    size = tl.minimum(rows, count - part * rows).to(tl.float32)
    place = (run * tl.num_programs(0) + part).to(tl.int64) * 2 * width + column
    tl.store(sums + place, usual + once / size, mask=inside)
    tl.store(sums + place + width, twice - once * once / size, mask=inside)


@triton.jit
def _cross(
    x,
    out,
    mean,
    spread,
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
    drops: tl.constexpr,
    tile: tl.constexpr,
    block: tl.constexpr,
):
    run = tl.program_id(1)
    row = tl.program_id(0) * tile + tl.arange(0, tile)
    column = tl.program_id(2) * block + tl.arange(0, block)
    value, there = _tile(x, run, row, column, count, width, run_stride, row_stride)
    if early:
        value = tl.maximum(value, 0)
    own, inside = run * width + column, column < width
    middle = tl.load(mean + own, mask=inside, other=0)
    times = tl.load(spread + own, mask=inside, other=0)
    times *= tl.load(gain + own, mask=inside, other=0)
    value = (value - middle[None, :]) * times[None, :]
    value += tl.load(shift + own, mask=inside, other=0)[None, :]
    if late:
        value = tl.maximum(value, 0)
    if drops:
        value *= _kept(row, column, tl.load(seed + run), tl.load(rate + run))
    place = (run.to(tl.int64) * count + row)[:, None] * width + column[None, :]
    tl.store(out + place, value.to(out.dtype.element_ty), mask=there)


@triton.jit
def _slope(
    x,
    slope,
    run,
    row,
    column,
    mean,
    spread,
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
    raw, there = _tile(x, run, row, column, count, width, run_stride, row_stride)
    value = tl.maximum(raw, 0) if early else raw
    own, inside = run * width + column, column < width
    middle = tl.load(mean + own, mask=inside, other=0)
    times = tl.load(spread + own, mask=inside, other=0)
    normed = tl.where(there, (value - middle[None, :]) * times[None, :], 0)
    change, _ = _tile(
        slope, run, row, column, count, width, slope_run_stride, slope_row_stride
    )
    change *= _kept(row, column, tl.load(seed + run), tl.load(rate + run))
    if late:
        scale = tl.load(gain + own, mask=inside, other=0)
        offset = tl.load(shift + own, mask=inside, other=0)
        above = normed * scale[None, :] + offset[None, :] > 0
        change = tl.where(above, change, 0)
    return change, normed, raw, there


@triton.jit
def _sums_back(
    x,
    slope,
    mean,
    spread,
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
    part, run = tl.program_id(0), tl.program_id(1)
    column = tl.program_id(2) * block + tl.arange(0, block)
    once = tl.zeros([block], tl.float32)
    twice = tl.zeros([block], tl.float32)
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
        once += tl.sum(change, 0)
        twice += tl.sum(change * normed, 0)
    place = (run * tl.num_programs(0) + part).to(tl.int64) * 2 * width + column
    tl.store(sums + place, once, mask=column < width)
    tl.store(sums + place + width, twice, mask=column < width)


@triton.jit
def _cross_back(
    x,
    slope,
    mean,
    spread,
    gain,
    shift,
    rate,
    seed,
    averages,
    out,
    count,
    width,
    run_stride,
    row_stride,
    slope_run_stride,
    slope_row_stride,
    early: tl.constexpr,
    late: tl.constexpr,
    tile: tl.constexpr,
    block: tl.constexpr,
):
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
    place = (run.to(tl.int64) * count + row)[:, None] * width + column[None, :]
    tl.store(out + place, found.to(out.dtype.element_ty), mask=there)


def moments(
    x: Float[Tensor, "runs nodes width"], relu: Relu
) -> tuple[Float[Tensor, "runs width"], Float[Tensor, "runs width"]]:
    """The mean and the variance of each column, after a ReLU that comes before."""
    x = _by_rows(x)
    runs, count, width = x.shape
    block, tile = _block(width)
    parts = triton.cdiv(count, ROWS)
    sums = torch.empty(runs, parts, 2, width, device=x.device)
    _moments[(parts, runs, triton.cdiv(width, block))](
        x, sums, *_sizes(x), relu == "before", ROWS, tile, block
    )
    sizes = torch.full((parts, 1), float(ROWS), device=x.device, dtype=torch.float64)
    sizes[-1] = count - (parts - 1) * ROWS
    means, squares = sums.double().unbind(2)
    mean = (sizes * means).sum(1) / count
    apart = sizes * (means - mean[:, None]).square()
    variance = (squares + apart).sum(1) / count
    return mean.float(), variance.float()


def cross(
    x: Float[Tensor, "runs nodes width"], norm: Norm, relu: Relu, *, drops: bool
) -> Float[Tensor, "runs nodes width"]:
    """Norm, ReLU and dropout of numbers."""
    x = _by_rows(x)
    runs, count, width = x.shape
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    block, tile = _block(width)
    grid = (triton.cdiv(count, tile), runs, triton.cdiv(width, block))
    flags = (relu == "before", relu == "after", drops)
    _cross[grid](x, out, *_vectors(norm), *_sizes(x), *flags, tile, block)
    return out


def cross_back(
    x: Float[Tensor, "runs nodes width"],
    slope: Float[Tensor, "runs nodes width"],
    norm: Norm,
    relu: Relu,
) -> tuple[
    Float[Tensor, "runs nodes width"],
    Float[Tensor, "runs width"],
    Float[Tensor, "runs width"],
]:
    """The slopes of the numbers, of the gain and of the shift."""
    x, slope = _by_rows(x), _by_rows(slope)
    runs, count, width = x.shape
    block, tile = _block(width)
    flags = (relu == "before", relu == "after")
    sizes = (*_sizes(x), slope.stride(0), slope.stride(1))
    parts, columns = triton.cdiv(count, ROWS), triton.cdiv(width, block)
    sums = torch.empty(runs, parts, 2, width, device=x.device)
    _sums_back[(parts, runs, columns)](
        x, slope, *_vectors(norm), sums, *sizes, *flags, ROWS, tile, block
    )
    totals = sums.sum(1)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    averages = totals / count
    grid = (triton.cdiv(count, tile), runs, columns)
    _cross_back[grid](
        x, slope, *_vectors(norm), averages, out, *sizes, *flags, tile, block
    )
    return out, totals[:, 1], totals[:, 0]


def _by_rows(x: Float[Tensor, "runs nodes width"]) -> Tensor:
    """The same numbers, those of a row side by side in memory."""
    return x if x.stride(2) == 1 or x.shape[2] == 1 else x.contiguous()


def _block(width: int) -> tuple[int, int]:
    """How many columns and rows a program takes at a time."""
    block = min(128, max(16, triton.next_power_of_2(width)))
    return block, TILE // block


def _sizes(x: Tensor) -> tuple[int, ...]:
    return x.shape[1], x.shape[2], x.stride(0), x.stride(1)


def _vectors(norm: Norm) -> tuple[Any, ...]:
    return tuple(part.contiguous() for part in norm)
