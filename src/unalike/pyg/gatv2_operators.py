"""Custom operators of torch for GATv2 attention, with gradients, fake forms, vmap."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from unalike.nn.sparse import move_runs
from unalike.pyg.attention_operators import as_heads, attention_arguments
from unalike.pyg.custom_operator import (
    Context,
    no_second_derivative,
    refuse_batched,
    register_operator,
)
from unalike.pyg.edges import Edges, Layout
from unalike.pyg.operators import check_device


def gatv2_attention(
    left: Tensor,
    right: Tensor,
    att: Tensor,
    keep: Tensor | None,
    edges: Edges,
    num_self_loops: int,
    negative_slope: float,
    keep_scale: float,
) -> Tensor:
    """Sums of `left`, weighted by softmax(att · LeakyReLU(left + right)).

    `keep` marks the weights that dropout keeps, those of the self-loops last.
    """
    check_device(left, edges)
    options = (edges.layout, num_self_loops, negative_slope, keep_scale)
    return gatv2_op(left, right, att, keep, edges.indices, edges.indptr, *options)[0]


def _kernels(device: torch.device) -> ModuleType:
    """The kernels of a device; those of CUDA need Triton."""
    if device.type == "cuda":
        from unalike.nn import cuda_gatv2

        return cuda_gatv2
    from unalike.nn import cpu_gatv2

    return cpu_gatv2


def _gatv2(
    left: Tensor,
    right: Tensor,
    att: Tensor,
    keep: Tensor | None,
    index: Tensor,
    indptr: Tensor | None,
    layout: Layout,
    num_self_loops: int,
    negative_slope: float,
    keep_scale: float,
) -> tuple[Tensor, Tensor]:
    """The attention-weighted sums and their logsumexp."""
    rows, options = attention_arguments(
        left,
        right,
        keep,
        (layout, index, indptr),
        num_self_loops,
        negative_slope,
        keep_scale,
    )
    return _kernels(left.device).gatv2_forward(rows, left, right, att, options)


def _gatv2_fake(left: Tensor, right: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    exact = torch.promote_types(left.dtype, torch.float32)
    heads = right.shape[:2]
    return left.new_empty(right.shape), left.new_empty(heads, dtype=exact)


def _gatv2_context(
    ctx: Context, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]
) -> None:
    *tensors, ctx.layout, num_self_loops, negative_slope, keep_scale = inputs
    ctx.options = (num_self_loops, negative_slope, keep_scale)
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(*tensors, *output)


def _gatv2_gradients(ctx: Context, grad_out: Tensor, _: Tensor) -> tuple[Any, ...]:
    *tensors, index, indptr, out, logsumexp = ctx.saved_tensors
    edges, saved = (index, indptr, ctx.layout), (out, logsumexp, grad_out)
    grads = gatv2_backward_op(*tensors, *saved, *edges, *ctx.options)
    return *grads, *[None] * 7


def _stacked(
    info: Any, in_dims: tuple[Any, ...], tensors: tuple[Tensor | None, ...]
) -> list[Tensor | None]:
    """Stacked tensors with the runs as more heads; `att` has no axis of nodes."""
    left, right, att, *rest = tensors
    assert att is not None
    vectors = move_runs(att, in_dims[2], info.batch_size).flatten(0, 1)
    others = as_heads(info, (*in_dims[:2], *in_dims[3:]), (left, right, *rest))
    return [*others[:2], vectors, *others[2:]]


def _gatv2_vmap(
    info: Any, in_dims: tuple[Any, ...], *arguments: Any
) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    """A stack of runs is more heads."""
    refuse_batched(in_dims[4:])
    tensors = _stacked(info, in_dims[:4], arguments[:4])
    outputs = gatv2_op(*tensors, *arguments[4:])
    return tuple(out.unflatten(1, (info.batch_size, -1)) for out in outputs), (1, 1)


gatv2_op = register_operator(
    "gatv2(Tensor left, Tensor right, Tensor att, Tensor? keep, Tensor index, "
    "Tensor? indptr, str layout, SymInt num_self_loops, float negative_slope, "
    "float keep_scale) -> (Tensor, Tensor)",
    _gatv2,
    fake=_gatv2_fake,
    setup_context=_gatv2_context,
    backward=_gatv2_gradients,
    vmap=_gatv2_vmap,
)


def _gatv2_backward(
    left: Tensor,
    right: Tensor,
    att: Tensor,
    keep: Tensor | None,
    out: Tensor,
    logsumexp: Tensor,
    grad_out: Tensor,
    index: Tensor,
    indptr: Tensor | None,
    layout: Layout,
    num_self_loops: int,
    negative_slope: float,
    keep_scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of left, right and att."""
    rows, options = attention_arguments(
        left,
        right,
        keep,
        (layout, index, indptr),
        num_self_loops,
        negative_slope,
        keep_scale,
    )
    tensors = (left, right, att, out, logsumexp, grad_out)
    return _kernels(left.device).gatv2_backward(rows, *tensors, options)


def _gatv2_backward_fake(
    left: Tensor, right: Tensor, att: Tensor, *_: Any
) -> tuple[Tensor, Tensor, Tensor]:
    return (
        left.new_empty(left.shape),
        right.new_empty(right.shape),
        att.new_empty(att.shape),
    )


def _gatv2_backward_vmap(
    info: Any, in_dims: tuple[Any, ...], *arguments: Any
) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    """A stack of runs is more heads."""
    refuse_batched(in_dims[7:])
    tensors = _stacked(info, in_dims[:7], arguments[:7])
    left, right, att = gatv2_backward_op(*tensors, *arguments[7:])
    runs = (info.batch_size, -1)
    grads = left.unflatten(1, runs), right.unflatten(1, runs), att.unflatten(0, runs)
    return grads, (1, 1, 0)


gatv2_backward_op = register_operator(
    "gatv2_backward(Tensor left, Tensor right, Tensor att, Tensor? keep, Tensor out, "
    "Tensor logsumexp, Tensor grad_out, Tensor index, Tensor? indptr, str layout, "
    "SymInt num_self_loops, float negative_slope, float keep_scale) -> "
    "(Tensor, Tensor, Tensor)",
    _gatv2_backward,
    fake=_gatv2_backward_fake,
    vmap=_gatv2_backward_vmap,
    **no_second_derivative("GATv2Conv"),
)
