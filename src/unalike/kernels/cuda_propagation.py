"""Propagation on NVIDIA cards: one Triton kernel, many narrow rows to a program."""

from __future__ import annotations

from collections.abc import Callable

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from unalike.kernels import plain
from unalike.kernels.crowded import FLOWING, filled
from unalike.kernels.rows import Rows
from unalike.kernels.spread import Spread

TILE = 2048
"""Numbers a program holds while it sums: rows times neighbours times columns."""
NEIGHBOURS = 32
"""The most that a program takes of each row at a time."""
NARROW = 16
"""Widths up to which the matrix is scaled beforehand: a pass over it costs less than
to read the scale of every neighbour."""


@triton.jit
def _propagate(
    starts,
    columns,
    values,
    order,
    dense,
    scale,
    added,
    keep,
    start,
    out,
    count,
    width,
    stride,
    start_stride,
    sums: tl.constexpr,
    weighted: tl.constexpr,
    scaled: tl.constexpr,
    shared: tl.constexpr,
    begun: tl.constexpr,
    rows: tl.constexpr,
    neighbours: tl.constexpr,
    block: tl.constexpr,
):
    place = tl.program_id(0) * rows + tl.arange(0, rows)
    there = place < count
    row = tl.load(order + place, mask=there, other=0).to(tl.int64)
    begin = tl.load(starts + row, mask=there, other=0)
    end = tl.load(starts + row + 1, mask=there, other=0)
    end = tl.where(there, end, begin)
    column = tl.program_id(1) * block + tl.arange(0, block)
    inside = column < width
    total = tl.zeros([rows, block], sums)
    longest = tl.max(end - begin, 0)
    for step in range(0, longest, neighbours):
        at = begin[:, None] + step + tl.arange(0, neighbours)[None, :]
        real = at < end[:, None]
        target = tl.load(columns + at, mask=real, other=0).to(tl.int64)
        source = target[:, :, None] * stride + column[None, None, :]
        read = real[:, :, None] & inside[None, None, :]
        picked = tl.load(dense + source, mask=read, other=0).to(sums)
        if not scaled:
            ends = tl.load(scale + target, mask=real, other=0).to(sums)
            picked *= ends[:, :, None]
        if weighted:
            weight = tl.load(values + at, mask=real, other=0).to(sums)
            picked *= weight[:, :, None]
        total += tl.sum(picked, 1)
    write = there[:, None] & inside[None, :]
    factor = tl.load(scale + row, mask=there, other=0).to(sums)
    loop = tl.load(added + row, mask=there, other=0).to(sums)
    if not scaled:
        loop *= factor
    own = dense + row[:, None] * stride + column[None, :]
    total += loop[:, None] * tl.load(own, mask=write, other=0).to(sums)
    total *= factor[:, None]
    if shared:
        share = tl.load(keep + column, mask=inside, other=1)
        total *= share.to(sums)[None, :]
    if begun:
        first = start + row[:, None] * start_stride + column[None, :]
        total += tl.load(first, mask=write, other=0).to(sums)
    here = out + row[:, None] * width + column[None, :]
    tl.store(here, total.to(out.dtype.element_ty), mask=write)


def propagate(
    spread: Spread,
    dense: Float[Tensor, "nodes width"],
    keep: Float[Tensor, " width"] | None = None,
    start: Float[Tensor, "nodes width"] | None = None,
) -> Float[Tensor, "nodes width"]:
    """A gather along scaled entries, its loops and its start in one pass."""
    if (matrix := filled(spread.rows, dense, FLOWING)) is not None:
        return plain.propagate(spread, dense, keep, start, _times(matrix))
    out = torch.empty(dense.shape, device=dense.device, dtype=dense.dtype)
    if not out.numel():
        return out
    (count, width), rows = dense.shape, spread.rows
    narrow = width <= NARROW
    # The product is float32 for halves: the scale of a narrow matrix costs no digits.
    source = dense * spread.scale[:, None] if narrow else _by_rows(dense)
    begun = source if start is None else _by_rows(start)
    block = min(128, max(2, triton.next_power_of_2(width)))
    neighbours = min(NEIGHBOURS, TILE // block)
    at_once = TILE // (neighbours * block)
    _propagate[(triton.cdiv(count, at_once), triton.cdiv(width, block))](
        rows.starts,
        rows.columns,
        rows.starts if rows.values is None else rows.values,
        rows.longest_first,
        source,
        spread.scale,
        spread.added,
        spread.scale if keep is None else keep.contiguous(),
        begun,
        out,
        count,
        width,
        source.stride(0),
        begun.stride(0),
        tl.float64 if dense.dtype == torch.float64 else tl.float32,
        rows.values is not None,
        narrow,
        keep is not None,
        start is not None,
        at_once,
        neighbours,
        block,
        num_warps=1 if at_once == 1 else 4,
    )
    return out


def _times(matrix: Float[Tensor, "nodes nodes"]) -> Callable[[Rows, Tensor], Tensor]:
    """The product with rows that were written with their zeros."""

    def product(_: Rows, dense: Tensor) -> Tensor:
        return torch.mm(matrix, dense.to(matrix.dtype), out_dtype=torch.float32)

    return product


def _by_rows(dense: Float[Tensor, "nodes width"]) -> Float[Tensor, "nodes width"]:
    """The same numbers, those of a row next to each other; a slice is not copied."""
    return dense if dense.stride(1) == 1 else dense.contiguous()
