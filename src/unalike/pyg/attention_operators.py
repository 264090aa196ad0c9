"""Custom operators of torch for GAT attention, with gradients, fake forms and vmap."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unalike.nn.attention import AttentionOptions, AttentionOutput
from unalike.nn.sparse import backend, move_runs
from unalike.pyg.custom_operator import (
    Context,
    no_second_derivative,
    refuse_batched,
    register_operator,
)
from unalike.pyg.edges import EdgeRows, Edges, Layout, message_graph
from unalike.pyg.operators import check_device

ONE_LOOP_PER_NODE = -1
"""Number of self-loops that stands for one of each node of a square graph."""


def gat_attention(
    x: Tensor,
    source: Tensor,
    target: Tensor,
    keep: Tensor | None,
    edges: Edges,
    num_self_loops: int,
    negative_slope: float,
    keep_scale: float,
) -> Tensor:
    """Sums of x over incoming edges, weighted by softmax(LeakyReLU(source + target)).

    `keep` marks the weights that dropout keeps, those of the self-loops last.
    """
    check_device(x, edges)
    return gat_op(
        x,
        source,
        target,
        keep,
        edges.indices,
        edges.indptr,
        edges.layout,
        num_self_loops,
        negative_slope,
        keep_scale,
        torch.is_grad_enabled(),
    )[0]


def _gat(
    x: Tensor,
    source: Tensor,
    target: Tensor,
    keep: Tensor | None,
    index: Tensor,
    indptr: Tensor | None,
    layout: Layout,
    num_self_loops: int,
    negative_slope: float,
    keep_scale: float,
    needs_grad: bool,
) -> AttentionOutput:
    """The attention-weighted sums, their logsumexp and what backward needs."""
    rows, options = attention_arguments(
        x,
        target,
        keep,
        (layout, index, indptr),
        num_self_loops,
        negative_slope,
        keep_scale,
    )
    kernels = backend(x.device)
    return kernels.gat_forward(
        rows, x, source, target, needs_grad=needs_grad, options=options
    )


def attention_arguments(
    x: Tensor,
    target: Tensor,
    keep: Tensor | None,
    edges: tuple[Layout, Tensor, Tensor | None],
    num_self_loops: int,
    negative_slope: float,
    keep_scale: float,
) -> tuple[EdgeRows, AttentionOptions]:
    """The outgoing edges, and the options of the kernels."""
    rows = message_graph(*edges, x.shape[0], target.shape[0]).outgoing
    loops = None if num_self_loops == ONE_LOOP_PER_NODE else num_self_loops
    positions = None if keep is None else rows.positions
    options = AttentionOptions(negative_slope, loops, keep, keep_scale, positions)
    return rows, options


def _gat_fake(
    x: Tensor,
    source: Tensor,
    target: Tensor,
    keep: Tensor | None,
    index: Tensor,
    indptr: Tensor | None,
    layout: Layout,
    num_self_loops: int,
    negative_slope: float,
    keep_scale: float,
    needs_grad: bool,
) -> AttentionOutput:
    exact = torch.promote_types(x.dtype, torch.float32)
    columns = x.shape[2]
    return (
        x.new_empty(*target.shape, columns),
        x.new_empty(target.shape, dtype=exact),
        x.new_empty(*target.shape, columns if needs_grad else 0),
    )


def _gat_context(
    ctx: Context, inputs: tuple[Any, ...], output: AttentionOutput
) -> None:
    *tensors, ctx.layout, num_self_loops, negative_slope, keep_scale, _ = inputs
    ctx.options = (num_self_loops, negative_slope, keep_scale)
    ctx.mark_non_differentiable(*output[1:])
    ctx.save_for_backward(*tensors, *output)


def _gat_gradients(ctx: Context, grad_out: Tensor, *_: Tensor) -> tuple[Any, ...]:
    *tensors, index, indptr, out, logsumexp, jacobian = ctx.saved_tensors
    edges = (index, indptr, ctx.layout)
    saved = (out, logsumexp, jacobian, grad_out)
    grads = gat_backward_op(*tensors, *saved, *edges, *ctx.options)
    return *grads, *[None] * 8


def as_heads(
    info: Any, in_dims: tuple[Any, ...], tensors: tuple[Tensor | None, ...]
) -> list[Tensor | None]:
    """Stacked tensors with the runs as more heads, shared ones repeated."""
    return [
        None
        if tensor is None
        else move_runs(tensor, dim, info.batch_size, 1).flatten(1, 2)
        for tensor, dim in zip(tensors, in_dims, strict=True)
    ]


def _gat_vmap(
    info: Any, in_dims: tuple[Any, ...], *arguments: Any
) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    """A stack of runs is more heads."""
    refuse_batched(in_dims[4:])
    tensors = as_heads(info, in_dims[:4], arguments[:4])
    outputs = gat_op(*tensors, *arguments[4:])
    return tuple(out.unflatten(1, (info.batch_size, -1)) for out in outputs), (1, 1, 1)


gat_op = register_operator(
    "gat(Tensor x, Tensor source, Tensor target, Tensor? keep, Tensor index, "
    "Tensor? indptr, str layout, SymInt num_self_loops, float negative_slope, "
    "float keep_scale, bool needs_grad) -> (Tensor, Tensor, Tensor)",
    _gat,
    fake=_gat_fake,
    setup_context=_gat_context,
    backward=_gat_gradients,
    vmap=_gat_vmap,
)


def _gat_backward(
    x: Tensor,
    source: Tensor,
    target: Tensor,
    keep: Tensor | None,
    out: Tensor,
    logsumexp: Tensor,
    jacobian: Tensor,
    grad_out: Tensor,
    index: Tensor,
    indptr: Tensor | None,
    layout: Layout,
    num_self_loops: int,
    negative_slope: float,
    keep_scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of x, source and target."""
    rows, options = attention_arguments(
        x,
        target,
        keep,
        (layout, index, indptr),
        num_self_loops,
        negative_slope,
        keep_scale,
    )
    tensors = (x, source, target, out, logsumexp, jacobian, grad_out)
    return backend(x.device).gat_backward(rows, *tensors, options)


def _gat_backward_fake(
    x: Tensor, source: Tensor, target: Tensor, *_: Any
) -> tuple[Tensor, Tensor, Tensor]:
    return (
        x.new_empty(x.shape),
        source.new_empty(source.shape),
        target.new_empty(target.shape),
    )


def _gat_backward_vmap(
    info: Any, in_dims: tuple[Any, ...], *arguments: Any
) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    """A stack of runs is more heads."""
    refuse_batched(in_dims[8:])
    tensors = as_heads(info, in_dims[:8], arguments[:8])
    grads = gat_backward_op(*tensors, *arguments[8:])
    return tuple(grad.unflatten(1, (info.batch_size, -1)) for grad in grads), (1, 1, 1)


gat_backward_op = register_operator(
    "gat_backward(Tensor x, Tensor source, Tensor target, Tensor? keep, Tensor out, "
    "Tensor logsumexp, Tensor jacobian, Tensor grad_out, Tensor index, "
    "Tensor? indptr, str layout, SymInt num_self_loops, float negative_slope, "
    "float keep_scale) -> (Tensor, Tensor, Tensor)",
    _gat_backward,
    fake=_gat_backward_fake,
    vmap=_gat_backward_vmap,
    **no_second_derivative("GATConv"),
)
