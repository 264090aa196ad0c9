"""Triton kernels of SpMM, normalised SpMM, AdamW, and SpMM fused with AdamW."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _sum_row(
    row,
    csr,
    dense,
    width,
    column,
    acc_dtype: tl.constexpr,
    has_values: tl.constexpr,
    block: tl.constexpr,
    neighbours: tl.constexpr,
):
    indptr, indices, values = csr
    in_width = column < width
    begin = tl.load(indptr + row)
    end = tl.load(indptr + row + 1)
    total = tl.zeros([block], acc_dtype)
    for entry in range(begin, end, neighbours):
        position = entry + tl.arange(0, neighbours)
        valid = position < end
        neighbour = tl.load(indices + position, mask=valid, other=0).to(tl.int64)
        index = neighbour[:, None] * width + column[None, :]
        mask = valid[:, None] & in_width[None, :]
        features = tl.load(dense + index, mask=mask, other=0).to(acc_dtype)
        if has_values:
            features *= tl.load(values + position, mask=valid, other=0)[:, None]
        total += tl.sum(features, 0)
    return total


@triton.jit
def spmm(
    indptr,
    indices,
    values,
    row_order,
    dense,
    bias,
    scale,
    residual,
    out,
    width,
    residual_stride,
    acc_dtype: tl.constexpr,
    has_bias: tl.constexpr,
    has_scale: tl.constexpr,
    has_residual: tl.constexpr,
    has_values: tl.constexpr,
    block: tl.constexpr,
    neighbours: tl.constexpr,
):
    """A block of columns of one row of scale * (A dense + bias) + residual."""
    row = tl.load(row_order + tl.program_id(0)).to(tl.int64)
    column = tl.program_id(1) * block + tl.arange(0, block)
    in_width = column < width
    csr = (indptr, indices, values)
    total = _sum_row(
        row, csr, dense, width, column, acc_dtype, has_values, block, neighbours
    )
    if has_bias:
        total += tl.load(bias + column, mask=in_width, other=0).to(acc_dtype)
    if has_scale:
        total *= tl.load(scale + row).to(acc_dtype)
    if has_residual:
        index = row * residual_stride + column
        total += tl.load(residual + index, mask=in_width, other=0).to(acc_dtype)
    tl.store(out + row * width + column, total.to(out.dtype.element_ty), mask=in_width)


@triton.jit
def _adamw_update(
    index,
    in_width,
    run,
    grad,
    state,
    step,
    beta1: tl.constexpr,
    beta2: tl.constexpr,
    eps: tl.constexpr,
    write_bf16: tl.constexpr,
):
    weight, exp_avg, exp_avg_sq, best_weight, weight_bf16 = state
    lr, weight_decay, improved, bias_corrections = step
    value = tl.load(weight + index, mask=in_width)
    is_best = tl.load(improved + run, mask=in_width, other=0) != 0
    tl.store(best_weight + index, value, mask=in_width & is_best)
    avg = beta1 * tl.load(exp_avg + index, mask=in_width) + (1 - beta1) * grad
    avg_sq = beta2 * tl.load(exp_avg_sq + index, mask=in_width)
    avg_sq += (1 - beta2) * grad * grad
    tl.store(exp_avg + index, avg, mask=in_width)
    tl.store(exp_avg_sq + index, avg_sq, mask=in_width)
    step_size = tl.load(lr + run, mask=in_width)
    decay_factor = 1 - step_size * tl.load(weight_decay + run, mask=in_width)
    denominator = tl.sqrt(avg_sq * tl.load(bias_corrections + 1)) + eps
    update = step_size * tl.load(bias_corrections) * avg / denominator
    value = decay_factor * value - update
    tl.store(weight + index, value, mask=in_width)
    if write_bf16:
        tl.store(weight_bf16 + index, value.to(tl.bfloat16), mask=in_width)


@triton.jit
def spmm_adamw(
    indptr,
    indices,
    values,
    row_order,
    grad_out,
    weight,
    exp_avg,
    exp_avg_sq,
    best_weight,
    weight_bf16,
    lr,
    weight_decay,
    improved,
    bias_corrections,
    width,
    run_width,
    beta1: tl.constexpr,
    beta2: tl.constexpr,
    eps: tl.constexpr,
    write_bf16: tl.constexpr,
    has_values: tl.constexpr,
    block: tl.constexpr,
    neighbours: tl.constexpr,
):
    """One row of the sparse gradient product, and the AdamW step along it."""
    row = tl.load(row_order + tl.program_id(0)).to(tl.int64)
    column = tl.program_id(1) * block + tl.arange(0, block)
    in_width = column < width
    csr = (indptr, indices, values)
    grad = _sum_row(
        row, csr, grad_out, width, column, tl.float32, has_values, block, neighbours
    )
    state = (weight, exp_avg, exp_avg_sq, best_weight, weight_bf16)
    step = (lr, weight_decay, improved, bias_corrections)
    _adamw_update(
        row * width + column,
        in_width,
        column // run_width,
        grad,
        state,
        step,
        beta1,
        beta2,
        eps,
        write_bf16,
    )


@triton.jit
def adamw(
    gradient,
    weight,
    exp_avg,
    exp_avg_sq,
    best_weight,
    weight_bf16,
    lr,
    weight_decay,
    improved,
    bias_corrections,
    runs,
    width,
    beta1: tl.constexpr,
    beta2: tl.constexpr,
    eps: tl.constexpr,
    write_bf16: tl.constexpr,
    block: tl.constexpr,
):
    """An AdamW step along a gradient that is computed already."""
    line = tl.program_id(0)
    column = tl.program_id(1) * block + tl.arange(0, block)
    in_width = column < width
    index = line.to(tl.int64) * width + column
    grad = tl.load(gradient + index, mask=in_width).to(tl.float32)
    state = (weight, exp_avg, exp_avg_sq, best_weight, weight_bf16)
    step = (lr, weight_decay, improved, bias_corrections)
    _adamw_update(
        index,
        in_width,
        line % runs + tl.zeros_like(column),
        grad,
        state,
        step,
        beta1,
        beta2,
        eps,
        write_bf16,
    )


@triton.jit
def normalized_spmm(
    indptr,
    indices,
    values,
    row_order,
    dense,
    scale,
    self_loop_weight,
    column_scale,
    residual,
    out,
    count,
    width,
    dense_stride,
    residual_stride,
    acc_dtype: tl.constexpr,
    has_values: tl.constexpr,
    prescaled: tl.constexpr,
    has_column_scale: tl.constexpr,
    has_residual: tl.constexpr,
    rows: tl.constexpr,
    neighbours: tl.constexpr,
    block: tl.constexpr,
):
    """Several rows of column_scale * S (A + L) S dense + residual."""
    index = tl.program_id(0) * rows + tl.arange(0, rows)
    row_mask = index < count
    row = tl.load(row_order + index, mask=row_mask, other=0).to(tl.int64)
    begin = tl.load(indptr + row, mask=row_mask, other=0)
    end = tl.load(indptr + row + 1, mask=row_mask, other=0)
    end = tl.where(row_mask, end, begin)
    column = tl.program_id(1) * block + tl.arange(0, block)
    in_width = column < width
    total = tl.zeros([rows, block], acc_dtype)
    max_length = tl.max(end - begin, 0)
    for step in range(0, max_length, neighbours):
        position = begin[:, None] + step + tl.arange(0, neighbours)[None, :]
        valid = position < end[:, None]
        neighbour = tl.load(indices + position, mask=valid, other=0).to(tl.int64)
        dense_index = neighbour[:, :, None] * dense_stride + column[None, None, :]
        mask = valid[:, :, None] & in_width[None, None, :]
        features = tl.load(dense + dense_index, mask=mask, other=0).to(acc_dtype)
        if not prescaled:
            scale_j = tl.load(scale + neighbour, mask=valid, other=0).to(acc_dtype)
            features *= scale_j[:, :, None]
        if has_values:
            value = tl.load(values + position, mask=valid, other=0).to(acc_dtype)
            features *= value[:, :, None]
        total += tl.sum(features, 1)
    out_mask = row_mask[:, None] & in_width[None, :]
    scale_i = tl.load(scale + row, mask=row_mask, other=0).to(acc_dtype)
    loop_weight = tl.load(self_loop_weight + row, mask=row_mask, other=0).to(acc_dtype)
    if not prescaled:
        loop_weight *= scale_i
    self_index = dense + row[:, None] * dense_stride + column[None, :]
    own = tl.load(self_index, mask=out_mask, other=0).to(acc_dtype)
    total += loop_weight[:, None] * own
    total *= scale_i[:, None]
    if has_column_scale:
        factor = tl.load(column_scale + column, mask=in_width, other=1)
        total *= factor.to(acc_dtype)[None, :]
    if has_residual:
        residual_index = residual + row[:, None] * residual_stride + column[None, :]
        total += tl.load(residual_index, mask=out_mask, other=0).to(acc_dtype)
    out_index = out + row[:, None] * width + column[None, :]
    tl.store(out_index, total.to(out.dtype.element_ty), mask=out_mask)
