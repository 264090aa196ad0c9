"""CUDA launches of all Triton programs. Imported late."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from unalike.data.csr import CSRMatrix
from unalike.nn import reference, triton_attention, triton_norm, triton_spmm
from unalike.nn.attention import NEGATIVE_SLOPE, AttentionOutput
from unalike.nn.norm import FusedNormParams, Relu
from unalike.nn.optim import ADAM_EPS, BETA1, BETA2, AdamWState, AdamWStep
from unalike.nn.sparse import MIN_COLUMNS_PROPAGATION, NormalizedCSR, dense_if_faster
from unalike.nn.triton_spmm import _propagate

# Attention on NVIDIA cards: a Triton program per row and some heads, no atomics.
#
# A row's sum is taken in a fixed order, so the same input gives the same bits.


ATTENTION_TILE = 512
"""Numbers a program reads at once: neighbours times heads times columns."""
COLUMNS = 128
"""Columns that the heads of a program have together, where one head has fewer."""
HEADS = 16
"""Heads of a program that reads their scores alone."""


def gat_forward(
    rows: CSRMatrix,
    x: Float[Tensor, "nodes heads width"],
    source: Float[Tensor, "nodes heads"],
    target: Float[Tensor, "nodes heads"],
    *,
    learning: bool,
) -> AttentionOutput:
    """What nodes gather along edges that enter them."""
    x, source, target = (one.contiguous() for one in (x, source, target))
    entering, kind = rows.T, torch.promote_types(x.dtype, torch.float32)
    log_sums, share = (torch.empty_like(source, dtype=kind) for _ in range(2))
    out = torch.empty_like(x)
    lean = torch.empty_like(x if learning else x[..., :0])
    if x.numel():
        heads = source.shape[1]
        many = min(triton.next_power_of_2(heads), HEADS)
        triton_attention.softmax_stats[len(x), triton.cdiv(heads, many)](
            *_edges(entering),
            source,
            target,
            log_sums,
            share,
            heads,
            NEGATIVE_SLOPE,
            _sums(x),
            many,
            ATTENTION_TILE // HEADS,
            num_warps=1,
        )
        given = (x, source, target, log_sums, share, out, lean)
        _gather(triton_attention.gat_forward, entering, *given, learning=learning)
    return out, log_sums, lean


def gat_backward(
    rows: CSRMatrix,
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
        many = max(1, ATTENTION_TILE // span)
        triton_attention.grad_target[(triton.cdiv(pairs, many),)](
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
        _gather(triton_attention.grad_source, rows, *given)
    return to_x, to_source, to_target


def _gather(
    kernel: Any, rows: CSRMatrix, x: Tensor, *others: Tensor, **flags: bool
) -> None:
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
        NEGATIVE_SLOPE,
        _sums(x),
        **flags,
        many=many,
        span=span,
        neighbours=max(1, ATTENTION_TILE // (many * span)),
        num_warps=1,
    )


def _edges(rows: CSRMatrix) -> tuple[Tensor, Tensor, Tensor]:
    return rows.indptr, rows.indices, rows.rows_by_length


def _sums(x: Tensor) -> Any:
    """The precision in which x is summed."""
    return tl.float64 if x.dtype == torch.float64 else tl.float32


# Bridges on NVIDIA cards: batch norm, ReLU and dropout in one pass each way.
#
# What is dropped is drawn from a seed, a row and a column, so that the backward pass
# draws the same again and nothing is kept of it. No atomics: the same bits each time.


NORM_TILE = 4096
"""Numbers a program holds at a time: rows times columns."""
ROWS = 1024
"""Rows that a program takes one tile after the other."""


def batch_norm_stats(
    x: Float[Tensor, "runs nodes width"],
    offset: Float[Tensor, "runs width"],
    relu: Relu,
) -> tuple[Float[Tensor, "runs width"], Float[Tensor, "runs width"]]:
    """The mean and the variance of each column, with its offset and an early ReLU."""
    x = row_major(x)
    runs, count, width = x.shape
    block, tile = block_shape(width)
    parts = triton.cdiv(count, ROWS)
    sums = torch.empty(runs, parts, 2, width, device=x.device)
    triton_norm.moments[(parts, runs, triton.cdiv(width, block))](
        x,
        offset.contiguous(),
        sums,
        *shape_and_strides(x),
        relu == "before",
        ROWS,
        tile,
        block,
    )
    sizes = torch.full((parts, 1), float(ROWS), device=x.device, dtype=torch.float64)
    sizes[-1] = count - (parts - 1) * ROWS
    means, squares = sums.double().unbind(2)
    mean = (sizes * means).sum(1) / count
    apart = sizes * (means - mean[:, None]).square()
    variance = (squares + apart).sum(1) / count
    return mean.float(), variance.float()


def norm_act_drop_forward(
    x: Float[Tensor, "runs nodes width"], norm: FusedNormParams, relu: Relu
) -> Float[Tensor, "runs nodes width"]:
    """Norm, ReLU and dropout of numbers."""
    x = row_major(x)
    runs, count, width = x.shape
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    block, tile = block_shape(width)
    grid = (triton.cdiv(count, tile), runs, triton.cdiv(width, block))
    flags = (relu == "before", relu == "after")
    triton_norm.forward[grid](
        x, out, *_vectors(norm), *shape_and_strides(x), *flags, tile, block
    )
    return out


def norm_act_drop_backward(
    x: Float[Tensor, "runs nodes width"],
    slope: Float[Tensor, "runs nodes width"],
    norm: FusedNormParams,
    relu: Relu,
) -> tuple[
    Float[Tensor, "runs nodes width"],
    Float[Tensor, "runs width"],
    Float[Tensor, "runs width"],
    Float[Tensor, "runs width"],
]:
    """The slopes of the numbers, laid out as they are, of offset, gain and shift."""
    x, slope = row_major(x), row_major(slope)
    runs, count, width = x.shape
    block, tile = block_shape(width)
    flags = (relu == "before", relu == "after")
    sizes = (*shape_and_strides(x), slope.stride(0), slope.stride(1))
    parts, columns = triton.cdiv(count, ROWS), triton.cdiv(width, block)
    sums = torch.empty(runs, parts, 2, width, device=x.device)
    triton_norm.backward_sums[(parts, runs, columns)](
        x, slope, *_vectors(norm), sums, *sizes, *flags, ROWS, tile, block
    )
    totals = sums.sum(1)
    out = torch.empty_like(x)
    averages = totals / count
    grid = (triton.cdiv(count, tile), runs, columns)
    through = torch.empty(runs, grid[0], width, device=x.device)
    triton_norm.backward[grid](
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


def row_major(x: Float[Tensor, "runs nodes width"]) -> Tensor:
    """The same numbers, those of a row side by side in memory."""
    return x if x.stride(2) == 1 or x.shape[2] == 1 else x.contiguous()


def block_shape(width: int) -> tuple[int, int]:
    """How many columns and rows a program takes at a time."""
    block = min(128, max(16, triton.next_power_of_2(width)))
    return block, NORM_TILE // block


def shape_and_strides(x: Tensor) -> tuple[int, ...]:
    """Rows, columns, and how far apart runs and rows lie."""
    return x.shape[1], x.shape[2], x.stride(0), x.stride(1)


def _vectors(norm: FusedNormParams) -> tuple[Any, ...]:
    return tuple(part.contiguous() for part in norm)


# Propagation on NVIDIA cards: one Triton kernel, many narrow rows to a program.


NORMALIZED_SPMM_TILE = 2048
"""Numbers a program holds while it sums: rows times neighbours times columns."""
NEIGHBOURS = 32
"""The most that a program takes of each row at a time."""
NARROW = 16
"""Widths up to which the matrix is scaled beforehand: a pass over it costs less than
to read the scale of every neighbour."""


def normalized_spmm(
    spread: NormalizedCSR,
    dense: Float[Tensor, "nodes width"],
    keep: Float[Tensor, " width"] | None = None,
    start: Float[Tensor, "nodes width"] | None = None,
) -> Float[Tensor, "nodes width"]:
    """A gather along scaled entries, its loops and its start in one pass."""
    if (
        matrix := dense_if_faster(spread.csr, dense, MIN_COLUMNS_PROPAGATION)
    ) is not None:
        return reference.normalized_spmm(
            spread, dense, keep, start, _dense_product(matrix)
        )
    out = torch.empty(dense.shape, device=dense.device, dtype=dense.dtype)
    if not out.numel():
        return out
    (count, width), rows = dense.shape, spread.csr
    narrow = width <= NARROW
    # The product is float32 for halves: the scale of a narrow matrix costs no digits.
    source = dense * spread.scale[:, None] if narrow else _row_major(dense)
    begun = source if start is None else _row_major(start)
    block = min(128, max(2, triton.next_power_of_2(width)))
    neighbours = min(NEIGHBOURS, NORMALIZED_SPMM_TILE // block)
    at_once = NORMALIZED_SPMM_TILE // (neighbours * block)
    _propagate[(triton.cdiv(count, at_once), triton.cdiv(width, block))](
        rows.indptr,
        rows.indices,
        rows.indptr if rows.values is None else rows.values,
        rows.rows_by_length,
        source,
        spread.scale,
        spread.self_loop_weight,
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


def _dense_product(
    matrix: Float[Tensor, "nodes nodes"],
) -> Callable[[CSRMatrix, Tensor], Tensor]:
    """The product with rows that were written with their zeros."""

    def product(_: CSRMatrix, dense: Tensor) -> Tensor:
        return torch.mm(matrix, dense.to(matrix.dtype), out_dtype=torch.float32)

    return product


def _row_major(dense: Float[Tensor, "nodes width"]) -> Float[Tensor, "nodes width"]:
    """The same numbers, those of a row next to each other; a slice is not copied."""
    return dense if dense.stride(1) == 1 else dense.contiguous()


# The kernels on NVIDIA cards: one Triton program per row, no atomics.
#
# A row's sum is taken in a fixed order, so the same input gives the same bits.


SPMM_TILE = 2048
"""Numbers a program holds while it sums: neighbours times columns."""
BYTES = 512
"""Bytes of a row that a program reads at a time: 16 for each of its 32 threads."""
WIDE = 1024
"""Numbers in a row from which a program that only sums takes twice as much."""


def spmm(
    rows: CSRMatrix,
    dense: Float[Tensor, "columns width"],
    offset: Float[Tensor, " width"] | None = None,
    out: Float[Tensor, "rows width"] | None = None,
) -> Float[Tensor, "rows width"]:
    """For each row the sum of the dense rows its columns name, times their values."""
    count, width = len(rows.indptr) - 1, dense.shape[1]
    if out is None:
        out = torch.empty(count, width, device=dense.device, dtype=dense.dtype)
    if (matrix := dense_if_faster(rows, dense)) is not None:
        if offset is None:
            return torch.mm(matrix, dense, out=out)
        return torch.addmm(offset.to(dense.dtype), matrix, dense, out=out)
    if out.numel():
        grid, shape = _shape(count, width, dense.dtype, 2 if width >= WIDE else 1)
        triton_spmm.spmm[grid](
            *_csr_args(rows),
            dense.contiguous(),
            out if offset is None else offset.contiguous(),
            out,
            width,
            tl.float64 if dense.dtype == torch.float64 else tl.float32,
            offset is not None,
            *_has_values(rows),
            *shape,
            num_warps=1,
        )
    return out


def adamw(
    weights: AdamWState, gradient: Float[Tensor, "rows runs width"], step: AdamWStep
) -> None:
    """Keep the best weights, then one step of AdamW, in one pass over memory."""
    rows, runs, width = weights.weight.shape
    if weights.weight.numel():
        block = min(SPMM_TILE, triton.next_power_of_2(width))
        triton_spmm.adamw[(rows * runs, triton.cdiv(width, block))](
            gradient.contiguous(),
            *_optimizer_args(weights, step),
            runs,
            width,
            BETA1,
            BETA2,
            ADAM_EPS,
            weights.weight_bf16 is not None,
            block,
        )


def spmm_adamw(
    weights: AdamWState,
    rows: CSRMatrix,
    gradient: Float[Tensor, "sources runs width"],
    step: AdamWStep,
) -> None:
    """A step of AdamW whose gradient is a gather of what reaches each row."""
    count, _, run_width = weights.weight.shape
    width = gradient[0].numel()
    flat = gradient.flatten(1)
    if (matrix := dense_if_faster(rows, flat)) is not None:
        slope = torch.mm(matrix, flat, out_dtype=torch.float32)
        adamw(weights, slope.view_as(weights.weight), step)
    elif weights.weight.numel():
        grid, shape = _shape(count, width, gradient.dtype)
        triton_spmm.spmm_adamw[grid](
            *_csr_args(rows),
            gradient.contiguous(),
            *_optimizer_args(weights, step),
            width,
            run_width,
            BETA1,
            BETA2,
            ADAM_EPS,
            weights.weight_bf16 is not None,
            *_has_values(rows),
            *shape,
            num_warps=1,
        )


def _shape(
    rows: int, width: int, kind: torch.dtype, times: int = 1
) -> tuple[tuple[int, int], tuple[int, int]]:
    """The grid, and how many columns and neighbours a program takes at a time."""
    most = times * BYTES // kind.itemsize
    block = min(most, max(16, triton.next_power_of_2(width)))
    return (rows, triton.cdiv(width, block)), (block, times * SPMM_TILE // block)


def _csr_args(rows: CSRMatrix) -> tuple[Tensor, ...]:
    values = rows.indptr if rows.values is None else rows.values
    return rows.indptr, rows.indices, values, rows.rows_by_length


def _has_values(rows: CSRMatrix) -> tuple[bool]:
    return (rows.values is not None,)


def _optimizer_args(weights: AdamWState, step: AdamWStep) -> tuple[Tensor, ...]:
    half = weights.weight if weights.weight_bf16 is None else weights.weight_bf16
    return (
        weights.weight,
        weights.exp_avg,
        weights.exp_avg_sq,
        weights.best_weight,
        half,
        step.lr,
        step.weight_decay,
        step.improved,
        step.bias_corrections,
    )


# Sums that are cut at 0, on NVIDIA cards: one pass each way.


def bias_relu_(
    total: Float[Tensor, "*runs nodes width"], offset: Float[Tensor, "*runs width"]
) -> Float[Tensor, "*runs nodes width"]:
    """relu of sums and an offset, in place."""
    stacked = total.view(-1, *total.shape[-2:])
    runs, count, width = stacked.shape
    block, tile = block_shape(width)
    grid = (triton.cdiv(count, tile), runs, triton.cdiv(width, block))
    if total.numel():
        triton_norm.bias_relu[grid](
            stacked, offset.contiguous(), *shape_and_strides(stacked), tile, block
        )
    return total


def bias_relu_backward(
    slope: Float[Tensor, "*runs nodes width"],
    total: Float[Tensor, "*runs nodes width"],
) -> tuple[Float[Tensor, "*runs nodes width"], Float[Tensor, "*runs width"]]:
    """The slopes of the sums, and of the offset."""
    shape = total.shape
    stacked = total.view(-1, *shape[-2:])
    slope = row_major(slope.reshape(stacked.shape))
    runs, count, width = stacked.shape
    block, tile = block_shape(width)
    parts = triton.cdiv(count, ROWS)
    out = torch.empty_like(stacked)
    sums = torch.zeros(runs, parts, width, device=total.device)
    if total.numel():
        triton_norm.bias_relu_backward[(parts, runs, triton.cdiv(width, block))](
            stacked,
            slope,
            out,
            sums,
            *shape_and_strides(stacked),
            slope.stride(0),
            slope.stride(1),
            ROWS,
            tile,
            block,
        )
    return out.view(shape), sums.sum(1).view(*shape[:-2], width)
