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

from unalike.kernels.attention import LEAK, Attended, programs
from unalike.kernels.rows import Rows

TILE = 512
"""Numbers a program reads at once: neighbours times heads times columns."""
COLUMNS = 128
"""Columns that the heads of a program have together, where one head has fewer."""
HEADS = 16
"""Heads of a program that reads their scores alone."""


def attend(
    rows: Rows,
    x: Float[Tensor, "nodes heads width"],
    source: Float[Tensor, "nodes heads"],
    target: Float[Tensor, "nodes heads"],
    *,
    learning: bool,
) -> Attended:
    """What nodes gather along edges that enter them."""
    x, source, target = (one.contiguous() for one in (x, source, target))
    entering, kind = rows.transposed, torch.promote_types(x.dtype, torch.float32)
    log_sums, share = (torch.empty_like(source, dtype=kind) for _ in range(2))
    out = torch.empty_like(x)
    lean = torch.empty_like(x if learning else x[..., :0])
    if x.numel():
        heads = source.shape[1]
        many = min(triton.next_power_of_2(heads), HEADS)
        programs.weigh[len(x), triton.cdiv(heads, many)](
            *_edges(entering),
            source,
            target,
            log_sums,
            share,
            heads,
            LEAK,
            _sums(x),
            many,
            TILE // HEADS,
            num_warps=1,
        )
        given = (x, source, target, log_sums, share, out, lean)
        _gather(programs.attend, entering, *given, learning=learning)
    return out, log_sums, lean


def attend_back(
    rows: Rows,
    x: Float[Tensor, "nodes heads width"],
    source: Float[Tensor, "nodes heads"],
    target: Float[Tensor, "nodes heads"],
    out: Float[Tensor, "nodes heads width"],
    log_sums: Float[Tensor, "nodes heads"],
    lean: Float[Tensor, "nodes heads width"],
    slope: Float[Tensor, "nodes heads width"],
) -> tuple[
    Float[Tensor, "nodes heads width"],
    Float[Tensor, "nodes heads"],
    Float[Tensor, "nodes heads"],
]:
    """The slopes of x, source and target, from that of what was gathered."""
    x, source, target, slope = (one.contiguous() for one in (x, source, target, slope))
    to_x, to_source, to_target = (torch.empty_like(one) for one in (x, source, target))
    mean = torch.empty_like(log_sums)
    if x.numel():
        pairs, width = log_sums.numel(), x.shape[2]
        span = triton.next_power_of_2(width)
        many = max(1, TILE // span)
        programs.to_target[(triton.cdiv(pairs, many),)](
            out,
            lean,
            slope,
            mean,
            to_target,
            pairs,
            width,
            _sums(x),
            many,
            span,
            num_warps=1,
        )
        given = (x, source, target, log_sums, slope, mean, to_x, to_source)
        _gather(programs.to_source, rows, *given)
    return to_x, to_source, to_target


def _gather(kernel: Any, rows: Rows, x: Tensor, *others: Tensor, **flags: bool) -> None:
    """Run a kernel over all rows and heads."""
    nodes, heads, width = x.shape
    span = triton.next_power_of_2(width)
    many = min(triton.next_power_of_2(heads), max(1, COLUMNS // span))
    kernel[nodes, triton.cdiv(heads, many)](
        *_edges(rows),
        x,
        *others,
        heads,
        width,
        LEAK,
        _sums(x),
        **flags,
        many=many,
        span=span,
        neighbours=max(1, TILE // (many * span)),
        num_warps=1,
    )


def _edges(rows: Rows) -> tuple[Tensor, Tensor, Tensor]:
    return rows.starts, rows.columns, rows.longest_first


def _sums(x: Tensor) -> Any:
    """The precision in which x is summed."""
    return tl.float64 if x.dtype == torch.float64 else tl.float32
