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

from unalike.kernels.bridges import Norm, Relu, programs

TILE = 4096
"""Numbers a program holds at a time: rows times columns."""
ROWS = 1024
"""Rows that a program takes one tile after the other."""


def moments(
    x: Float[Tensor, "runs nodes width"], relu: Relu
) -> tuple[Float[Tensor, "runs width"], Float[Tensor, "runs width"]]:
    """The mean and the variance of each column, after a ReLU that comes before."""
    x = _by_rows(x)
    runs, count, width = x.shape
    block, tile = _block(width)
    parts = triton.cdiv(count, ROWS)
    sums = torch.empty(runs, parts, 2, width, device=x.device)
    programs.moments[(parts, runs, triton.cdiv(width, block))](
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
    x: Float[Tensor, "runs nodes width"], norm: Norm, relu: Relu
) -> Float[Tensor, "runs nodes width"]:
    """Norm, ReLU and dropout of numbers."""
    x = _by_rows(x)
    runs, count, width = x.shape
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    block, tile = _block(width)
    grid = (triton.cdiv(count, tile), runs, triton.cdiv(width, block))
    flags = (relu == "before", relu == "after")
    programs.cross[grid](x, out, *_vectors(norm), *_sizes(x), *flags, tile, block)
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
    programs.sums_back[(parts, runs, columns)](
        x, slope, *_vectors(norm), sums, *sizes, *flags, ROWS, tile, block
    )
    totals = sums.sum(1)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    averages = totals / count
    grid = (triton.cdiv(count, tile), runs, columns)
    programs.cross_back[grid](
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
