"""Bridges on NVIDIA cards: batch norm, ReLU and dropout in one pass each way.

What is dropped is drawn from a seed, a row and a column, so that the backward pass
draws the same again and nothing is kept of it. No atomics: the same bits each time.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
from jaxtyping import Float
from torch import Tensor

from unalike.kernels.bridges import Norm, Relu, programs, programs_back

TILE = 4096
"""Numbers a program holds at a time: rows times columns."""
ROWS = 1024
"""Rows that a program takes one tile after the other."""


def moments(
    x: Float[Tensor, "runs nodes width"],
    offset: Float[Tensor, "runs width"],
    relu: Relu,
) -> tuple[Float[Tensor, "runs width"], Float[Tensor, "runs width"]]:
    """The mean and the variance of each column, with its offset and an early ReLU."""
    x = by_rows(x)
    runs, count, width = x.shape
    block, tile = block_of(width)
    parts = triton.cdiv(count, ROWS)
    sums = torch.empty(runs, parts, 2, width, device=x.device)
    programs.moments[(parts, runs, triton.cdiv(width, block))](
        x, offset.contiguous(), sums, *sizes_of(x), relu == "before", ROWS, tile, block
    )
    sizes = torch.full((parts, 1), float(ROWS), device=x.device, dtype=torch.float64)
    sizes[-1] = count - (parts - 1) * ROWS
    means, squares = sums.double().unbind(2)
    mean = (sizes * means).sum(1) / count
    apart = sizes * (means - mean[:, None]).square()
    variance = (squares + apart).sum(1) / count
    return mean.float(), variance.float()


def cross(
    x: Float[Tensor, "runs nodes width"], norm: Norm, relu: Relu
) -> Float[Tensor, "runs nodes width"]:
    """Norm, ReLU and dropout of numbers."""
    x = by_rows(x)
    runs, count, width = x.shape
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    block, tile = block_of(width)
    grid = (triton.cdiv(count, tile), runs, triton.cdiv(width, block))
    flags = (relu == "before", relu == "after")
    programs.cross[grid](x, out, *_vectors(norm), *sizes_of(x), *flags, tile, block)
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
    Float[Tensor, "runs width"],
]:
    """The slopes of the numbers, laid out as they are, of offset, gain and shift."""
    x, slope = by_rows(x), by_rows(slope)
    runs, count, width = x.shape
    block, tile = block_of(width)
    flags = (relu == "before", relu == "after")
    sizes = (*sizes_of(x), slope.stride(0), slope.stride(1))
    parts, columns = triton.cdiv(count, ROWS), triton.cdiv(width, block)
    sums = torch.empty(runs, parts, 2, width, device=x.device)
    programs_back.sums_back[(parts, runs, columns)](
        x, slope, *_vectors(norm), sums, *sizes, *flags, ROWS, tile, block
    )
    totals = sums.sum(1)
    out = torch.empty_like(x)
    averages = totals / count
    grid = (triton.cdiv(count, tile), runs, columns)
    through = torch.empty(runs, grid[0], width, device=x.device)
    programs_back.cross_back[grid](
        x,
        slope,
        *_vectors(norm),
        averages,
        out,
        through,
        *sizes,
        out.stride(0),
        out.stride(1),
        *flags,
        tile,
        block,
    )
    return out, through.sum(1), totals[:, 1], totals[:, 0]


def by_rows(x: Float[Tensor, "runs nodes width"]) -> Tensor:
    """The same numbers, those of a row side by side in memory."""
    return x if x.stride(2) == 1 or x.shape[2] == 1 else x.contiguous()


def block_of(width: int) -> tuple[int, int]:
    """How many columns and rows a program takes at a time."""
    block = min(128, max(16, triton.next_power_of_2(width)))
    return block, TILE // block


def sizes_of(x: Tensor) -> tuple[int, ...]:
    """Rows, columns, and how far apart runs and rows lie."""
    return x.shape[1], x.shape[2], x.stride(0), x.stride(1)


def _vectors(norm: Norm) -> tuple[Any, ...]:
    return tuple(part.contiguous() for part in norm)
