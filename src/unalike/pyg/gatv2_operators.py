"""Custom operators of torch for GATv2 attention, with gradients, fake forms, vmap."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op

from unalike.nn.sparse import move_runs
from unalike.pyg.attention_operators import as_heads, attention_arguments
from unalike.pyg.edges import Edges
from unalike.pyg.operators import refuse_batched, refuse_double_backward


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
    options = (num_self_loops, negative_slope, keep_scale)
    return gatv2_op(left, right, att, keep, edges.tensors, edges.layout, *options)[0]


def _kernels(device: torch.device) -> ModuleType:
    """The kernels of a device; those of CUDA need Triton."""
    if device.type == "cuda":
        from unalike.nn import cuda_gatv2

        return cuda_gatv2
    from unalike.nn import cpu_gatv2

    return cpu_gatv2


@custom_op(
    "unalike::gatv2",
    mutates_args=(),
    schema="(Tensor left, Tensor right, Tensor att, Tensor? keep, Tensor[] edges, "
    "str layout, SymInt num_self_loops, float negative_slope, float keep_scale) -> "
    "(Tensor, Tensor)",
)
def gatv2_op(
    left: Tensor,
    right: Tensor,
    att: Tensor,
    keep: Tensor | None,
    edges: list[Tensor],
    layout: str,
    num_self_loops: int,
    negative_slope: float,
    keep_scale: float,
) -> tuple[Tensor, Tensor]:
    """The attention-weighted sums and their logsumexp."""
    rows, options = attention_arguments(
        left, right, keep, edges, layout, num_self_loops, negative_slope, keep_scale
    )
    return _kernels(left.device).gatv2_forward(rows, left, right, att, options)


@gatv2_op.register_fake
def _gatv2_fake(left: Tensor, right: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    exact = torch.promote_types(left.dtype, torch.float32)
    heads = right.shape[:2]
    return left.new_empty(right.shape), left.new_empty(heads, dtype=exact)


def _gatv2_context(
    ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]
) -> None:
    left, right, att, keep, edges, *ctx.arguments = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(left, right, att, keep, *output, *edges)


def _gatv2_backward(ctx: Any, grad_out: Tensor, _: Tensor) -> tuple[Any, ...]:
    left, right, att, keep, out, logsumexp, *edges = ctx.saved_tensors
    tensors = (left, right, att, keep, out, logsumexp, grad_out)
    grads = gatv2_backward_op(*tensors, edges, *ctx.arguments)
    return *grads, None, [None] * len(edges), *[None] * 4


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


gatv2_op.register_autograd(_gatv2_backward, setup_context=_gatv2_context)
gatv2_op.register_vmap(_gatv2_vmap)


@custom_op(
    "unalike::gatv2_backward",
    mutates_args=(),
    schema="(Tensor left, Tensor right, Tensor att, Tensor? keep, Tensor out, "
    "Tensor logsumexp, Tensor grad_out, Tensor[] edges, str layout, "
    "SymInt num_self_loops, float negative_slope, float keep_scale) -> "
    "(Tensor, Tensor, Tensor)",
)
def gatv2_backward_op(
    left: Tensor,
    right: Tensor,
    att: Tensor,
    keep: Tensor | None,
    out: Tensor,
    logsumexp: Tensor,
    grad_out: Tensor,
    edges: list[Tensor],
    layout: str,
    num_self_loops: int,
    negative_slope: float,
    keep_scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of left, right and att."""
    rows, options = attention_arguments(
        left, right, keep, edges, layout, num_self_loops, negative_slope, keep_scale
    )
    tensors = (left, right, att, out, logsumexp, grad_out)
    return _kernels(left.device).gatv2_backward(rows, *tensors, options)


@gatv2_backward_op.register_fake
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


gatv2_backward_op.register_vmap(_gatv2_backward_vmap)
refuse_double_backward(gatv2_backward_op, "GATv2Conv")
