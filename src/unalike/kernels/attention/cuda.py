"""Attention on NVIDIA cards: a Triton program per row and some heads, no atomics.

A row's sum is taken in a fixed order, so the same input gives the same bits.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from unalike.kernels.attention import LEAK, programs
from unalike.kernels.rows import Rows

TILE = 1024
"""Numbers a program holds while it sums: neighbours times heads times columns."""
COLUMNS = 128
"""Columns that the heads of a program have together, where one head has fewer."""


def attend(
    rows: Rows,
    x: Float[Tensor, "nodes heads width"],
    source: Float[Tensor, "nodes heads"],
    target: Float[Tensor, "nodes heads"],
) -> tuple[Float[Tensor, "nodes heads width"], Float[Tensor, "nodes heads"]]:
    """What nodes gather along edges that enter them, and the logs of weights' sums."""
    read = [one.contiguous() for one in (x, source, target)]
    kind = torch.promote_types(x.dtype, torch.float32)
    out = torch.empty_like(read[0])
    log_sums = torch.empty_like(read[1], dtype=kind)
    _launch(programs.attend, rows.transposed, *read, out, log_sums)
    return out, log_sums


def attend_back(
    rows: Rows,
    x: Float[Tensor, "nodes heads width"],
    source: Float[Tensor, "nodes heads"],
    target: Float[Tensor, "nodes heads"],
    out: Float[Tensor, "nodes heads width"],
    log_sums: Float[Tensor, "nodes heads"],
    slope: Float[Tensor, "nodes heads width"],
) -> tuple[
    Float[Tensor, "nodes heads width"],
    Float[Tensor, "nodes heads"],
    Float[Tensor, "nodes heads"],
]:
    """The slopes of x, source and target, from that of what was gathered."""
    read = [one.contiguous() for one in (x, source, target)]
    slope, mean = slope.contiguous(), torch.empty_like(log_sums)
    to_x, to_source, to_target = (torch.empty_like(one) for one in read)
    _launch(
        programs.to_target,
        rows.transposed,
        *read,
        out,
        log_sums,
        slope,
        mean,
        to_target,
    )
    _launch(programs.to_source, rows, *read, log_sums, slope, mean, to_x, to_source)
    return to_x, to_source, to_target


def _launch(kernel: Any, rows: Rows, x: Tensor, *others: Tensor) -> None:
    """Run a kernel over all rows and heads, if there are any."""
    nodes, heads, width = x.shape
    block = triton.next_power_of_2(width)
    many = min(triton.next_power_of_2(heads), max(1, COLUMNS // block))
    if x.numel():
        kernel[nodes, triton.cdiv(heads, many)](
            rows.starts,
            rows.columns,
            rows.longest_first,
            x,
            *others,
            heads,
            width,
            LEAK,
            tl.float64 if x.dtype == torch.float64 else tl.float32,
            many,
            block,
            max(1, TILE // (many * block)),
            num_warps=1,
        )
