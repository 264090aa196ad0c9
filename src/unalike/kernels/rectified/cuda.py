"""Sums that are cut at 0, on NVIDIA cards: one pass each way."""

import torch
import triton
from jaxtyping import Float
from torch import Tensor

from unalike.kernels.bridges.cuda import ROWS, block_of, by_rows, sizes_of
from unalike.kernels.rectified import programs


def rectify(
    total: Float[Tensor, "*runs nodes width"], offset: Float[Tensor, "*runs width"]
) -> Float[Tensor, "*runs nodes width"]:
    """relu of sums and an offset, in place."""
    stacked = total.view(-1, *total.shape[-2:])
    runs, count, width = stacked.shape
    block, tile = block_of(width)
    grid = (triton.cdiv(count, tile), runs, triton.cdiv(width, block))
    if total.numel():
        programs.rectify[grid](
            stacked, offset.contiguous(), *sizes_of(stacked), tile, block
        )
    return total


def rectify_back(
    slope: Float[Tensor, "*runs nodes width"],
    total: Float[Tensor, "*runs nodes width"],
) -> tuple[Float[Tensor, "*runs nodes width"], Float[Tensor, "*runs width"]]:
    """The slopes of the sums, and of the offset."""
    shape = total.shape
    stacked = total.view(-1, *shape[-2:])
    slope = by_rows(slope.reshape(stacked.shape))
    runs, count, width = stacked.shape
    block, tile = block_of(width)
    parts = triton.cdiv(count, ROWS)
    out = torch.empty_like(stacked)
    sums = torch.zeros(runs, parts, width, device=total.device)
    if total.numel():
        programs.rectify_back[(parts, runs, triton.cdiv(width, block))](
            stacked,
            slope,
            out,
            sums,
            *sizes_of(stacked),
            slope.stride(0),
            slope.stride(1),
            ROWS,
            tile,
            block,
        )
    return out.view(shape), sums.sum(1).view(*shape[:-2], width)
