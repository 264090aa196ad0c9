"""CUDA kernels: launches of the Triton programs; imported on CUDA devices only.

No kernel uses atomics: a sum is taken in a fixed order and gives the same bits again.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from unalike.data.csr import CSRMatrix
from unalike.nn import triton_attention, triton_norm, triton_spmm
from unalike.nn.attention import (
    DEFAULT_ATTENTION,
    AttentionOptions,
    AttentionOutput,
    Heads,
    Scores,
)
from unalike.nn.norm import FusedNormParams, Relu
from unalike.nn.optim import ADAM_EPS, BETA1, BETA2, AdamWState, AdamWStep
from unalike.nn.sparse import (
    MIN_COLUMNS_PROPAGATION,
    Dense,
    NormalizedCSR,
    Vector,
    dense_if_faster,
    normalized_product,
    scale_and_add_,
)

ATTENTION_TILE = 512
"""Values that an attention program reads at a time: neighbours x heads x columns."""
COLUMNS_PER_PROGRAM = 128
"""Columns of the heads of an attention program together, where one head has fewer."""
MAX_HEADS = 16
"""Heads of a program that reads attention scores only."""
NORM_TILE = 4096
"""Values that a norm program holds at a time: rows x columns."""
ROWS_PER_PROGRAM = 1024
"""Rows that a program reads tile by tile where it sums over rows."""
NORMALIZED_SPMM_TILE = 2048
"""Values that a program of the normalised SpMM holds: rows x neighbours x columns."""
MAX_NEIGHBOURS = 32
"""Neighbours of each row that a program of the normalised SpMM reads at a time."""
NARROW_WIDTH = 16
"""Width up to which the dense matrix is scaled in a pass of its own, which costs less
than to read the scale of every neighbour."""
SPMM_TILE = 2048
"""Values that an SpMM program holds while it sums: neighbours x columns."""
LOAD_BYTES = 512
"""Bytes of a row that an SpMM program reads at a time: 16 for each of 32 threads."""
SDDMM_NNZ = 2**20
"""Entries whose rows are held at a time by the product of rows."""
WIDE = 1024
"""Width from which an SpMM program without AdamW takes twice as much."""


def gat_forward(
    rows: CSRMatrix,
    x: Heads,
    source: Scores,
    target: Scores,
    *,
    needs_grad: bool,
    options: AttentionOptions = DEFAULT_ATTENTION,
) -> AttentionOutput:
    """The attention-weighted sums over incoming edges, with their logsumexp."""
    x, source, target = (tensor.contiguous() for tensor in (x, source, target))
    incoming, dtype = rows.T, torch.promote_types(x.dtype, torch.float32)
    logsumexp, positive_share = (
        torch.empty_like(target, dtype=dtype) for _ in range(2)
    )
    out = x.new_empty(*target.shape, x.shape[2])
    target_jacobian = torch.empty_like(out if needs_grad else out[..., :0])
    if out.numel():
        targets, heads = target.shape
        heads_per_program = min(triton.next_power_of_2(heads), MAX_HEADS)
        triton_attention.softmax_stats[targets, triton.cdiv(heads, heads_per_program)](
            *_edges(incoming),
            source,
            target,
            logsumexp,
            positive_share,
            heads,
            _num_loops(x, options),
            options.negative_slope,
            acc_dtype(x),
            options.num_self_loops != 0,
            heads_per_program,
            ATTENTION_TILE // MAX_HEADS,
            num_warps=1,
        )
        arguments = (x, source, target, logsumexp, positive_share, out, target_jacobian)
        launch_attention(
            triton_attention.gat_forward,
            incoming,
            options,
            *arguments,
            needs_grad=needs_grad,
        )
    return out, logsumexp, target_jacobian


def gat_backward(
    rows: CSRMatrix,
    x: Heads,
    source: Scores,
    target: Scores,
    out: Heads,
    logsumexp: Scores,
    target_jacobian: Heads,
    grad_out: Heads,
    options: AttentionOptions = DEFAULT_ATTENTION,
) -> tuple[Heads, Scores, Scores]:
    """The gradients of x, source and target."""
    inputs = (x, source, target, grad_out)
    x, source, target, grad_out = (tensor.contiguous() for tensor in inputs)
    grad_x, grad_source, grad_target = (
        torch.empty_like(tensor) for tensor in (x, source, target)
    )
    grad_dot_out = torch.empty_like(logsumexp)
    if grad_target.numel():
        pairs, width = logsumexp.numel(), x.shape[2]
        padded_width = triton.next_power_of_2(width)
        pairs_per_program = max(1, ATTENTION_TILE // padded_width)
        triton_attention.gat_backward_target[(triton.cdiv(pairs, pairs_per_program),)](
            out,
            target_jacobian,
            grad_out,
            grad_dot_out,
            grad_target,
            pairs,
            width,
            acc_dtype(x),
            pairs_per_program,
            padded_width,
            num_warps=1,
        )
    if x.numel():
        arguments = (
            x,
            source,
            target,
            logsumexp,
            grad_out,
            grad_dot_out,
            grad_x,
            grad_source,
        )
        launch_attention(
            triton_attention.gat_backward_source, rows, options, *arguments
        )
    return grad_x, grad_source, grad_target


def launch_attention(
    kernel: Any,
    rows: CSRMatrix,
    options: AttentionOptions,
    x: Tensor,
    *others: Tensor,
    **flags: bool,
) -> None:
    """Launch an attention kernel over all rows and heads."""
    _, heads, width = x.shape
    padded_width = triton.next_power_of_2(width)
    heads_per_program = min(
        triton.next_power_of_2(heads), max(1, COLUMNS_PER_PROGRAM // padded_width)
    )
    keep, positions = options.keep, options.positions
    kernel[len(rows.indptr) - 1, triton.cdiv(heads, heads_per_program)](
        *_edges(rows),
        x,
        *others,
        rows.indptr if keep is None else keep.contiguous(),
        rows.indptr if positions is None else positions,
        len(rows.indices),
        options.keep_scale,
        heads,
        _num_loops(x, options),
        width,
        options.negative_slope,
        acc_dtype(x),
        options.num_self_loops != 0,
        keep is not None,
        **flags,
        heads_per_program=heads_per_program,
        padded_width=padded_width,
        neighbours=max(1, ATTENTION_TILE // (heads_per_program * padded_width)),
        num_warps=1,
    )


def _num_loops(x: Heads, options: AttentionOptions) -> int:
    """The nodes that get a self-loop, the first ones."""
    return len(x) if options.num_self_loops is None else options.num_self_loops


def _edges(rows: CSRMatrix) -> tuple[Tensor, Tensor, Tensor]:
    return rows.indptr, rows.indices, rows.rows_by_length


def acc_dtype(x: Tensor) -> Any:
    """The precision in which sums over x are accumulated."""
    return tl.float64 if x.dtype == torch.float64 else tl.float32


def batch_norm_stats(
    x: Float[Tensor, "runs nodes width"], bias: Float[Tensor, "runs width"], relu: Relu
) -> tuple[Float[Tensor, "runs width"], Float[Tensor, "runs width"]]:
    """The mean and the variance of each column of x + bias, behind a ReLU if asked."""
    x = row_major(x)
    runs, count, width = x.shape
    _, parts, tile = tiling(x)
    num_parts = parts[0]
    sums = torch.empty(runs, num_parts, 2, width, device=x.device)
    before, shape = relu == "before", shape_and_strides(x)
    triton_norm.moments[parts](
        x, bias.contiguous(), sums, *shape, before, ROWS_PER_PROGRAM, *tile
    )
    sizes = torch.full(
        (num_parts, 1), float(ROWS_PER_PROGRAM), device=x.device, dtype=torch.float64
    )
    sizes[-1] = count - (num_parts - 1) * ROWS_PER_PROGRAM
    means, squares = sums.double().unbind(2)
    mean = (sizes * means).sum(1) / count
    between = sizes * (means - mean[:, None]).square()
    variance = (squares + between).sum(1) / count
    return mean.float(), variance.float()


def norm_act_drop_forward(
    x: Float[Tensor, "runs nodes width"], norm: FusedNormParams, relu: Relu
) -> Float[Tensor, "runs nodes width"]:
    """Batch norm, ReLU and dropout in one pass.

    The dropout mask is a hash of seed, row and column, so that the backward pass
    computes it again and nothing of it is stored.
    """
    x = row_major(x)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    grid, _, tile = tiling(x)
    flags = (relu == "before", relu == "after")
    triton_norm.forward[grid](
        x, out, *_norm_args(norm), *shape_and_strides(x), *flags, *tile
    )
    return out


def norm_act_drop_backward(
    x: Float[Tensor, "runs nodes width"],
    grad_out: Float[Tensor, "runs nodes width"],
    norm: FusedNormParams,
    relu: Relu,
) -> tuple[
    Float[Tensor, "runs nodes width"],
    Float[Tensor, "runs width"],
    Float[Tensor, "runs width"],
    Float[Tensor, "runs width"],
]:
    """The gradients of x (in its memory layout), bias_in, weight and bias."""
    x, grad_out = row_major(x), row_major(grad_out)
    runs, count, width = x.shape
    grid, parts, tile = tiling(x)
    flags = (relu == "before", relu == "after")
    inputs = (x, grad_out, *_norm_args(norm))
    sizes = (*shape_and_strides(x), grad_out.stride(0), grad_out.stride(1))
    sums = torch.empty(runs, parts[0], 2, width, device=x.device)
    triton_norm.backward_sums[parts](
        *inputs, sums, *sizes, *flags, ROWS_PER_PROGRAM, *tile
    )
    totals = sums.sum(1)
    grad_x = torch.empty_like(x)
    bias_grad_parts = torch.empty(runs, grid[0], width, device=x.device)
    triton_norm.backward[grid](
        *inputs,
        totals / count,
        grad_x,
        bias_grad_parts,
        *sizes,
        grad_x.stride(0),
        grad_x.stride(1),
        *flags,
        *tile,
    )
    return grad_x, bias_grad_parts.sum(1), totals[:, 1], totals[:, 0]


def row_major(x: Float[Tensor, "*runs nodes width"]) -> Tensor:
    """x with each row contiguous in memory; slices of columns are not copied."""
    return x if x.stride(-1) == 1 or x.shape[-1] == 1 else x.contiguous()


Grid = tuple[int, int, int]


def tiling(
    x: Float[Tensor, "runs nodes width"],
) -> tuple[Grid, Grid, tuple[int, int]]:
    """The grids of programs for tiles and for many rows; rows and columns of a tile."""
    runs, count, width = x.shape
    block = min(128, max(16, triton.next_power_of_2(width)))
    tile, blocks = NORM_TILE // block, triton.cdiv(width, block)
    grid = (triton.cdiv(count, tile), runs, blocks)
    parts = (triton.cdiv(count, ROWS_PER_PROGRAM), runs, blocks)
    return grid, parts, (tile, block)


def shape_and_strides(x: Tensor) -> tuple[int, ...]:
    """Rows, columns, and the strides of runs and rows."""
    return x.shape[1], x.shape[2], x.stride(0), x.stride(1)


def _norm_args(norm: FusedNormParams) -> tuple[Any, ...]:
    return tuple(part.contiguous() for part in norm)


def normalized_spmm(
    adjacency: NormalizedCSR,
    dense: Dense,
    column_scale: Vector | None = None,
    residual: Dense | None = None,
) -> Dense:
    """column_scale * S (A + L) S dense + residual in one pass."""
    (count, width), rows = dense.shape, adjacency.csr
    if (matrix := dense_if_faster(rows, dense, MIN_COLUMNS_PROPAGATION)) is not None:
        multiply = partial(_multiply_dense, matrix)
        return normalized_product(adjacency, multiply, dense, column_scale, residual)
    out = torch.empty(dense.shape, device=dense.device, dtype=dense.dtype)
    if not out.numel():
        return out
    narrow = width <= NARROW_WIDTH
    # scale is float32, so that the scaled copy of a bfloat16 matrix loses no digits.
    source = row_major(dense * adjacency.scale[:, None] if narrow else dense)
    residual_or_dummy = source if residual is None else row_major(residual)
    block = min(128, max(2, triton.next_power_of_2(width)))
    neighbours = min(MAX_NEIGHBOURS, NORMALIZED_SPMM_TILE // block)
    rows_per_program = NORMALIZED_SPMM_TILE // (neighbours * block)
    grid = (triton.cdiv(count, rows_per_program), triton.cdiv(width, block))
    triton_spmm.normalized_spmm[grid](
        *_csr_args(rows),
        source,
        adjacency.scale,
        adjacency.self_loop_weight,
        adjacency.scale if column_scale is None else column_scale.contiguous(),
        residual_or_dummy,
        out,
        count,
        width,
        source.stride(0),
        residual_or_dummy.stride(0),
        acc_dtype(dense),
        rows.values is not None,
        narrow,
        column_scale is not None,
        residual is not None,
        rows_per_program,
        neighbours,
        block,
        num_warps=1 if rows_per_program == 1 else 4,
    )
    return out


def _multiply_dense(
    matrix: Float[Tensor, "nodes nodes"], dense: Dense
) -> Float[Tensor, "nodes width"]:
    """The product on tensor cores, in float32."""
    return torch.mm(matrix, dense.to(matrix.dtype), out_dtype=torch.float32)


def spmm(
    rows: CSRMatrix,
    dense: Dense,
    bias: Vector | None = None,
    out: Dense | None = None,
    *,
    scale: Float[Tensor, " rows"] | None = None,
    residual: Dense | None = None,
) -> Dense:
    """scale * (rows @ dense + bias) + residual in one pass; the scale is by row."""
    count, width = len(rows.indptr) - 1, dense.shape[1]
    if out is None:
        out = torch.empty(count, width, device=dense.device, dtype=dense.dtype)
    if (matrix := dense_if_faster(rows, dense)) is not None:
        if bias is None:
            torch.mm(matrix, dense, out=out)
        else:
            torch.addmm(bias.to(dense.dtype), matrix, dense, out=out)
        return scale_and_add_(out, scale, residual)
    if out.numel():
        grid, shape = _shape(count, width, dense.dtype, 2 if width >= WIDE else 1)
        residual_or_dummy = out if residual is None else row_major(residual)
        triton_spmm.spmm[grid](
            *_csr_args(rows),
            dense.contiguous(),
            out if bias is None else bias.contiguous(),
            out if scale is None else scale.contiguous(),
            residual_or_dummy,
            out,
            width,
            residual_or_dummy.stride(0),
            acc_dtype(dense),
            bias is not None,
            scale is not None,
            residual is not None,
            rows.values is not None,
            *shape,
            num_warps=1,
        )
    return out


def sddmm(
    rows: CSRMatrix,
    x: Float[Tensor, "rows width"],
    y: Float[Tensor, "columns width"],
) -> Float[Tensor, " nnz"]:
    """The inner product of a row of x and a row of y for each entry."""
    row = torch.arange(len(x), device=x.device)
    row = row.repeat_interleave(rows.degrees, output_size=len(rows.indices))
    dtype = torch.promote_types(x.dtype, torch.float32)
    out = torch.empty(len(row), dtype=dtype, device=x.device)
    for low in range(0, len(row), SDDMM_NNZ):
        part = slice(low, low + SDDMM_NNZ)
        products = x[row[part]].to(dtype) * y[rows.indices[part].long()]
        torch.sum(products, 1, out=out[part])
    return out


def adamw(
    state: AdamWState, grad: Float[Tensor, "rows runs width"], step: AdamWStep
) -> None:
    """Save the best weights, then take an AdamW step, in one pass over memory."""
    rows, runs, width = state.weight.shape
    if state.weight.numel():
        block = min(SPMM_TILE, triton.next_power_of_2(width))
        triton_spmm.adamw[(rows * runs, triton.cdiv(width, block))](
            grad.contiguous(),
            *_optimizer_args(state, step),
            runs,
            width,
            BETA1,
            BETA2,
            ADAM_EPS,
            state.weight_bf16 is not None,
            block,
        )


def spmm_adamw(
    state: AdamWState,
    rows: CSRMatrix,
    grad_out: Float[Tensor, "sources runs width"],
    step: AdamWStep,
) -> None:
    """An AdamW step along the gradient rows @ grad_out."""
    count, _, run_width = state.weight.shape
    width = grad_out[0].numel()
    flat = grad_out.flatten(1)
    if (matrix := dense_if_faster(rows, flat)) is not None:
        grad = torch.mm(matrix, flat, out_dtype=torch.float32)
        adamw(state, grad.view_as(state.weight), step)
    elif state.weight.numel():
        grid, shape = _shape(count, width, grad_out.dtype)
        triton_spmm.spmm_adamw[grid](
            *_csr_args(rows),
            grad_out.contiguous(),
            *_optimizer_args(state, step),
            width,
            run_width,
            BETA1,
            BETA2,
            ADAM_EPS,
            state.weight_bf16 is not None,
            rows.values is not None,
            *shape,
            num_warps=1,
        )


def _shape(
    rows: int, width: int, dtype: torch.dtype, times: int = 1
) -> tuple[tuple[int, int], tuple[int, int]]:
    """The grid, and the columns and neighbours of a tile."""
    max_columns = times * LOAD_BYTES // dtype.itemsize
    block = min(max_columns, max(16, triton.next_power_of_2(width)))
    return (rows, triton.cdiv(width, block)), (block, times * SPMM_TILE // block)


def _csr_args(rows: CSRMatrix) -> tuple[Tensor, ...]:
    values = rows.indptr if rows.values is None else rows.values
    return rows.indptr, rows.indices, values, rows.rows_by_length


def _optimizer_args(state: AdamWState, step: AdamWStep) -> tuple[Tensor, ...]:
    weight_bf16 = state.weight if state.weight_bf16 is None else state.weight_bf16
    return (
        state.weight,
        state.exp_avg,
        state.exp_avg_sq,
        state.best_weight,
        weight_bf16,
        step.lr,
        step.weight_decay,
        step.improved,
        step.bias_corrections,
    )


def bias_relu_(
    total: Float[Tensor, "*runs nodes width"], bias: Float[Tensor, "*runs width"]
) -> Float[Tensor, "*runs nodes width"]:
    """relu(total + bias), in place."""
    stacked = total.view(-1, *total.shape[-2:])
    grid, _, tile = tiling(stacked)
    if total.numel():
        triton_norm.bias_relu[grid](
            stacked, bias.contiguous(), *shape_and_strides(stacked), *tile
        )
    return total


def bias_relu_backward(
    grad_out: Float[Tensor, "*runs nodes width"],
    total: Float[Tensor, "*runs nodes width"],
) -> tuple[Float[Tensor, "*runs nodes width"], Float[Tensor, "*runs width"]]:
    """The gradients of total and bias."""
    shape = total.shape
    stacked = total.view(-1, *shape[-2:])
    grad_out = row_major(grad_out.reshape(stacked.shape))
    runs, _, width = stacked.shape
    _, parts, tile = tiling(stacked)
    grad_total = torch.empty_like(stacked)
    bias_grad_parts = torch.zeros(runs, parts[0], width, device=total.device)
    if total.numel():
        triton_norm.bias_relu_backward[parts](
            stacked,
            grad_out,
            grad_total,
            bias_grad_parts,
            *shape_and_strides(stacked),
            grad_out.stride(0),
            grad_out.stride(1),
            ROWS_PER_PROGRAM,
            *tile,
        )
    return grad_total.view(shape), bias_grad_parts.sum(1).view(*shape[:-2], width)
