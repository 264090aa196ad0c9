"""Triton kernels of batch norm + ReLU + dropout and of bias + ReLU, both ways."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def hash32(bits):
    """A 32-bit hash for the random numbers of dropout."""
    bits ^= bits >> 16
    bits *= 0x7FEB352D
    bits ^= bits >> 15
    bits *= 0x846CA68B
    return bits ^ (bits >> 16)


@triton.jit
def dropout_scale(row, column, seed, dropout_p):
    """The factor of each value under dropout: 0 or 1 / (1 - p)."""
    row_bits = hash32(row.to(tl.uint32) * 0x9E3779B1 + seed.to(tl.uint32))
    bits = hash32(row_bits[:, None] ^ (column.to(tl.uint32) * 0x85EBCA6B)[None, :])
    uniform = (bits >> 8).to(tl.float32) * (1.0 / 16777216.0)
    return tl.where(uniform >= dropout_p, 1 / (1 - dropout_p), 0.0)


@triton.jit
def load_tile(x, run, row, column, shape):
    """The values of a tile as float32, and the mask of those inside the matrix.

    The shape is that of the matrix of a run, with the strides of runs and rows.
    """
    count, width, run_stride, row_stride = shape
    index = run.to(tl.int64) * run_stride + row.to(tl.int64)[:, None] * row_stride
    mask = (row < count)[:, None] & (column < width)[None, :]
    values = tl.load(x + index + column[None, :], mask=mask, other=0)
    return values.to(tl.float32), mask


@triton.jit
def moments(
    x,
    bias_in,
    sums,
    count,
    width,
    run_stride,
    row_stride,
    relu_before: tl.constexpr,
    rows: tl.constexpr,
    tile: tl.constexpr,
    block: tl.constexpr,
):
    """The mean of a block of rows, and the sum of squared deviations from it."""
    shape = (count, width, run_stride, row_stride)
    block_id, run = tl.program_id(0), tl.program_id(1)
    column = tl.program_id(2) * block + tl.arange(0, block)
    in_width = column < width
    # Sums are taken of deviations from the first row, which loses no digits.
    start = run.to(tl.int64) * run_stride + (block_id * rows).to(tl.int64) * row_stride
    bias_row = tl.load(bias_in + run * width + column, mask=in_width, other=0)
    pivot = tl.load(x + start + column, mask=in_width, other=0).to(tl.float32)
    pivot += bias_row
    if relu_before:
        pivot = tl.maximum(pivot, 0)
    deviations = tl.zeros([tile, block], tl.float32)
    squared = tl.zeros([tile, block], tl.float32)
    for step in range(0, rows, tile):
        row = block_id * rows + step + tl.arange(0, tile)
        value, mask = load_tile(x, run, row, column, shape)
        value += bias_row[None, :]
        if relu_before:
            value = tl.maximum(value, 0)
        deviation = tl.where(mask, value - pivot[None, :], 0)
        deviations += deviation
        squared += deviation * deviation
    size = tl.minimum(rows, count - block_id * rows).to(tl.float32)
    index = (run * tl.num_programs(0) + block_id).to(tl.int64) * 2 * width + column
    total = tl.sum(deviations, 0)
    sum_of_squares = tl.sum(squared, 0) - total * total / size
    tl.store(sums + index, pivot + total / size, mask=in_width)
    tl.store(sums + index + width, sum_of_squares, mask=in_width)


@triton.jit
def forward(
    x,
    out,
    mean,
    inv_std,
    bias_in,
    weight,
    bias,
    dropout_p,
    seed,
    count,
    width,
    run_stride,
    row_stride,
    relu_before: tl.constexpr,
    relu_after: tl.constexpr,
    tile: tl.constexpr,
    block: tl.constexpr,
):
    """Batch norm, ReLU and dropout of a tile."""
    run = tl.program_id(1)
    row = tl.program_id(0) * tile + tl.arange(0, tile)
    column = tl.program_id(2) * block + tl.arange(0, block)
    shape = (count, width, run_stride, row_stride)
    value, mask = load_tile(x, run, row, column, shape)
    vector, in_width = run * width + column, column < width
    value += tl.load(bias_in + vector, mask=in_width, other=0)[None, :]
    if relu_before:
        value = tl.maximum(value, 0)
    mean_row = tl.load(mean + vector, mask=in_width, other=0)
    factor = tl.load(inv_std + vector, mask=in_width, other=0)
    factor *= tl.load(weight + vector, mask=in_width, other=0)
    value = (value - mean_row[None, :]) * factor[None, :]
    value += tl.load(bias + vector, mask=in_width, other=0)[None, :]
    if relu_after:
        value = tl.maximum(value, 0)
    p = tl.load(dropout_p + run)
    if p > 0:
        value *= dropout_scale(row, column, tl.load(seed + run), p)
    index = (run.to(tl.int64) * count + row)[:, None] * width + column[None, :]
    tl.store(out + index, value.to(out.dtype.element_ty), mask=mask)


@triton.jit
def _grad_norm_output(
    x,
    grad_out,
    run,
    row,
    column,
    norm,
    shape,
    strides,
    relu_before: tl.constexpr,
    relu_after: tl.constexpr,
):
    """The gradient of the norm's output, the normed values, the input and its mask."""
    mean, inv_std, bias_in, weight, bias, dropout_p, seed = norm
    count, width, _, _ = shape
    pre_norm, mask = load_tile(x, run, row, column, shape)
    vector, in_width = run * width + column, column < width
    pre_norm += tl.load(bias_in + vector, mask=in_width, other=0)[None, :]
    value = tl.maximum(pre_norm, 0) if relu_before else pre_norm
    mean_row = tl.load(mean + vector, mask=in_width, other=0)
    factor = tl.load(inv_std + vector, mask=in_width, other=0)
    normed = tl.where(mask, (value - mean_row[None, :]) * factor[None, :], 0)
    grad_shape = (count, width, strides[0], strides[1])
    grad, _ = load_tile(grad_out, run, row, column, grad_shape)
    p = tl.load(dropout_p + run)
    if p > 0:
        grad *= dropout_scale(row, column, tl.load(seed + run), p)
    if relu_after:
        scale = tl.load(weight + vector, mask=in_width, other=0)
        bias_row = tl.load(bias + vector, mask=in_width, other=0)
        positive = normed * scale[None, :] + bias_row[None, :] > 0
        grad = tl.where(positive, grad, 0)
    return grad, normed, pre_norm, mask


@triton.jit
def backward_sums(
    x,
    grad_out,
    mean,
    inv_std,
    bias_in,
    weight,
    bias,
    dropout_p,
    seed,
    sums,
    count,
    width,
    run_stride,
    row_stride,
    grad_run_stride,
    grad_row_stride,
    relu_before: tl.constexpr,
    relu_after: tl.constexpr,
    rows: tl.constexpr,
    tile: tl.constexpr,
    block: tl.constexpr,
):
    """Sums over a block of rows of the gradient, and of it times the normed values."""
    norm = (mean, inv_std, bias_in, weight, bias, dropout_p, seed)
    shape = (count, width, run_stride, row_stride)
    strides = (grad_run_stride, grad_row_stride)
    block_id, run = tl.program_id(0), tl.program_id(1)
    column = tl.program_id(2) * block + tl.arange(0, block)
    grad_sum = tl.zeros([tile, block], tl.float32)
    grad_normed_sum = tl.zeros([tile, block], tl.float32)
    for step in range(0, rows, tile):
        row = block_id * rows + step + tl.arange(0, tile)
        grad, normed, _, _ = _grad_norm_output(
            x, grad_out, run, row, column, norm, shape, strides, relu_before, relu_after
        )
        grad_sum += grad
        grad_normed_sum += grad * normed
    index = (run * tl.num_programs(0) + block_id).to(tl.int64) * 2 * width + column
    tl.store(sums + index, tl.sum(grad_sum, 0), mask=column < width)
    tl.store(sums + index + width, tl.sum(grad_normed_sum, 0), mask=column < width)


@triton.jit
def backward(
    x,
    grad_out,
    mean,
    inv_std,
    bias_in,
    weight,
    bias,
    dropout_p,
    seed,
    mean_grads,
    grad_x_out,
    bias_grad_parts,
    count,
    width,
    run_stride,
    row_stride,
    grad_run_stride,
    grad_row_stride,
    out_run_stride,
    out_row_stride,
    relu_before: tl.constexpr,
    relu_after: tl.constexpr,
    tile: tl.constexpr,
    block: tl.constexpr,
):
    """The gradient of the input of a tile, and its sum for the bias in front."""
    norm = (mean, inv_std, bias_in, weight, bias, dropout_p, seed)
    shape = (count, width, run_stride, row_stride)
    strides = (grad_run_stride, grad_row_stride)
    run = tl.program_id(1)
    row = tl.program_id(0) * tile + tl.arange(0, tile)
    column = tl.program_id(2) * block + tl.arange(0, block)
    grad, normed, pre_norm, mask = _grad_norm_output(
        x, grad_out, run, row, column, norm, shape, strides, relu_before, relu_after
    )
    vector, in_width = run * width + column, column < width
    grad_mean = tl.load(mean_grads + run * width + vector, mask=in_width, other=0)
    grad_normed_mean = tl.load(
        mean_grads + run * width + vector + width, mask=in_width, other=0
    )
    factor = tl.load(inv_std + vector, mask=in_width, other=0)
    factor *= tl.load(weight + vector, mask=in_width, other=0)
    grad_x = factor[None, :] * (
        grad - grad_mean[None, :] - normed * grad_normed_mean[None, :]
    )
    if relu_before:
        grad_x = tl.where(pre_norm > 0, grad_x, 0)
    start = run.to(tl.int64) * out_run_stride + row.to(tl.int64) * out_row_stride
    index = start[:, None] + column[None, :]
    tl.store(grad_x_out + index, grad_x.to(grad_x_out.dtype.element_ty), mask=mask)
    block_id = (run * tl.num_programs(0) + tl.program_id(0)).to(tl.int64)
    total = tl.sum(tl.where(mask, grad_x, 0), 0)
    tl.store(bias_grad_parts + block_id * width + column, total, mask=in_width)


@triton.jit
def bias_relu(
    total,
    bias,
    count,
    width,
    run_stride,
    row_stride,
    tile: tl.constexpr,
    block: tl.constexpr,
):
    """relu(total + bias) of a tile, in place."""
    run = tl.program_id(1)
    row = tl.program_id(0) * tile + tl.arange(0, tile)
    column = tl.program_id(2) * block + tl.arange(0, block)
    shape = (count, width, run_stride, row_stride)
    value, mask = load_tile(total, run, row, column, shape)
    bias_row = tl.load(bias + run * width + column, mask=column < width, other=0)
    value = tl.maximum(value + bias_row.to(tl.float32)[None, :], 0)
    start = run.to(tl.int64) * run_stride + row.to(tl.int64) * row_stride
    index = start[:, None] + column[None, :]
    tl.store(total + index, value.to(total.dtype.element_ty), mask=mask)


@triton.jit
def bias_relu_backward(
    total,
    grad_out,
    grad_total,
    grad_bias_parts,
    count,
    width,
    run_stride,
    row_stride,
    grad_run_stride,
    grad_row_stride,
    rows: tl.constexpr,
    tile: tl.constexpr,
    block: tl.constexpr,
):
    """The gradient of relu(total + bias) for a block of rows, and its sum."""
    shape = (count, width, run_stride, row_stride)
    grad_shape = (count, width, grad_run_stride, grad_row_stride)
    block_id, run = tl.program_id(0), tl.program_id(1)
    column = tl.program_id(2) * block + tl.arange(0, block)
    grad_bias = tl.zeros([tile, block], tl.float32)
    for step in range(0, rows, tile):
        row = block_id * rows + step + tl.arange(0, tile)
        value, mask = load_tile(total, run, row, column, shape)
        grad, _ = load_tile(grad_out, run, row, column, grad_shape)
        grad = tl.where(value > 0, grad, 0)
        start = run.to(tl.int64) * run_stride + row.to(tl.int64) * row_stride
        index = start[:, None] + column[None, :]
        tl.store(grad_total + index, grad.to(grad_total.dtype.element_ty), mask=mask)
        grad_bias += grad
    index = (run * tl.num_programs(0) + block_id).to(tl.int64) * width + column
    tl.store(grad_bias_parts + index, tl.sum(grad_bias, 0), mask=column < width)
