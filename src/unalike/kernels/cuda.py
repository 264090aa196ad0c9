"""The kernels on NVIDIA cards: one Triton program per row, no atomics.

A row's sum is taken in a fixed order, so the same input gives the same bits.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from unalike.kernels import cuda_programs as programs
from unalike.kernels.crowded import filled
from unalike.kernels.cuda_propagation import propagate as propagate
from unalike.kernels.plain import induced as induced
from unalike.kernels.plain import take as take
from unalike.kernels.rows import Rows
from unalike.kernels.update import BETA1, BETA2, EPSILON, Step, Weights

TILE = 2048
"""Numbers a program holds while it sums: neighbours times columns."""
BYTES = 512
"""Bytes of a row that a program reads at a time: 16 for each of its 32 threads."""
MANY_COLUMNS = 1024
"""Numbers in a row from which a program that only sums takes twice as much."""


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
        grid, shape = _shape(
            count, width, dense.dtype, 2 if width >= MANY_COLUMNS else 1
        )
        programs.gather[grid](
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
    rows, runs, width = weights.now.shape
    if weights.now.numel():
        block = min(TILE, triton.next_power_of_2(width))
        programs.adamw[(rows * runs, triton.cdiv(width, block))](
            gradient.contiguous(),
            *_state(weights, step),
            runs,
            width,
            BETA1,
            BETA2,
            EPSILON,
            weights.half is not None,
            block,
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
        grid, shape = _shape(count, width, gradient.dtype)
        programs.gather_adamw[grid](
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


def _shape(
    rows: int, width: int, kind: torch.dtype, times: int = 1
) -> tuple[tuple[int, int], tuple[int, int]]:
    """The grid, and how many columns and neighbours a program takes at a time."""
    most = times * BYTES // kind.itemsize
    block = min(most, max(16, triton.next_power_of_2(width)))
    return (rows, triton.cdiv(width, block)), (block, times * TILE // block)


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
