"""CUDA kernels of GATv2 attention: launches of the Triton programs."""

from __future__ import annotations

import torch
from torch import Tensor

from unalike.data.csr import CSRMatrix
from unalike.nn import triton_gatv2
from unalike.nn.attention import AttentionOptions
from unalike.nn.cuda import launch_attention


def gatv2_forward(
    rows: CSRMatrix, left: Tensor, right: Tensor, att: Tensor, options: AttentionOptions
) -> tuple[Tensor, Tensor]:
    """The attention-weighted sums of `left` over incoming edges, and their logsumexp.

    `rows` holds the outgoing edges.
    """
    inputs = [tensor.contiguous() for tensor in (left, right, att)]
    dtype = torch.promote_types(left.dtype, torch.float32)
    out = torch.empty_like(inputs[1])
    logsumexp = right.new_empty(right.shape[:2], dtype=dtype)
    if out.numel():
        arguments = (*inputs, out, logsumexp)
        launch_attention(triton_gatv2.gatv2_forward, rows.T, options, *arguments)
    return out, logsumexp


def gatv2_backward(
    rows: CSRMatrix,
    left: Tensor,
    right: Tensor,
    att: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    grad_out: Tensor,
    options: AttentionOptions,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of left, right and att."""
    grad_dot_out = (grad_out.to(logsumexp.dtype) * out).sum(2)
    inputs = [
        tensor.contiguous()
        for tensor in (left, right, att, logsumexp, grad_out, grad_dot_out)
    ]
    grad_left, grad_right = map(torch.zeros_like, inputs[:2])
    att_by_target = torch.zeros_like(inputs[1], dtype=logsumexp.dtype)
    if left.numel() and right.numel():
        kernel = triton_gatv2.gatv2_backward_source
        launch_attention(kernel, rows, options, *inputs, grad_left)
        kernel = triton_gatv2.gatv2_backward_target
        grads = (grad_right, att_by_target)
        launch_attention(kernel, rows.T, options, *inputs, *grads)
    return grad_left, grad_right, att_by_target.sum(0).to(att.dtype)
