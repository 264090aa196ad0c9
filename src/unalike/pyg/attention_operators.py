"""Custom operators of torch for the attention of GAT and GATv2, with gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from unalike.nn.attention import AttentionOptions
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

KEEP = "Tensor? keep"
EDGES_AND_OPTIONS = (
    "Tensor index, Tensor? indptr, str layout, SymInt num_self_loops, "
    "float negative_slope, float keep_scale"
)
"""The last arguments of both operators."""


class AttentionOperator:
    """The attention-weighted sums over incoming edges, as an operator of torch.

    The first three tensors need gradients; the first one has the summed features, and
    the one at `of_targets` a row for each target. A stack of runs is more heads, which
    are the axes `heads`. The kernels give the sums, their logsumexp and perhaps more
    for the gradient.
    """

    def __init__(
        self,
        layer: str,
        name: str,
        tensors: str,
        outputs: str,
        *,
        of_targets: int,
        heads: tuple[int, int, int],
        forward: Callable[..., tuple[Tensor, ...]],
        backward: Callable[..., tuple[Tensor, Tensor, Tensor]],
    ) -> None:
        self.of_targets, self.heads = of_targets, heads
        self.forward, self.backward = forward, backward
        inputs = ", ".join(f"Tensor {tensor}" for tensor in tensors.split())
        saved = ", ".join(f"Tensor {output}" for output in outputs.split())
        self.num_outputs = len(outputs.split())
        result = ", ".join(["Tensor"] * self.num_outputs)
        self.op = register_operator(
            f"{name}({inputs}, {KEEP}, {EDGES_AND_OPTIONS}, bool needs_grad) -> "
            f"({result})",
            self._forward,
            fake=self._forward_fake,
            setup_context=self._setup_context,
            backward=self._gradients,
            vmap=self._forward_vmap,
        )
        self.backward_op = register_operator(
            f"{name}_backward({inputs}, {KEEP}, {saved}, Tensor grad_out, "
            f"{EDGES_AND_OPTIONS}) -> (Tensor, Tensor, Tensor)",
            self._backward,
            fake=lambda *inputs: tuple(one.new_empty(one.shape) for one in inputs[:3]),
            vmap=self._backward_vmap,
            **no_second_derivative(layer),
        )

    def __call__(
        self,
        tensors: tuple[Tensor, Tensor, Tensor],
        keep: Tensor | None,
        edges: Edges,
        num_self_loops: int,
        negative_slope: float,
        keep_scale: float,
    ) -> Tensor:
        """The sums; `keep` marks the weights that dropout keeps, of loops last."""
        check_device(tensors[0], edges)
        options = (num_self_loops, negative_slope, keep_scale)
        arrays = (edges.indices, edges.indptr, edges.layout)
        grad = torch.is_grad_enabled()
        output: Tensor = self.op(*tensors, keep, *arrays, *options, grad)[0]
        return output

    def _rows_and_options(
        self,
        tensors: Sequence[Tensor],
        keep: Tensor | None,
        index: Tensor,
        indptr: Tensor | None,
        layout: Layout,
        num_self_loops: int,
        negative_slope: float,
        keep_scale: float,
    ) -> tuple[EdgeRows, AttentionOptions]:
        """The outgoing edges, and the options of the kernels."""
        sizes = (len(tensors[0]), len(tensors[self.of_targets]))
        rows = message_graph(layout, index, indptr, *sizes).outgoing
        loops = None if num_self_loops == ONE_LOOP_PER_NODE else num_self_loops
        positions = None if keep is None else rows.positions
        options = AttentionOptions(negative_slope, loops, keep, keep_scale, positions)
        return rows, options

    def _forward(self, *inputs: Any) -> tuple[Tensor, ...]:
        *tensors, keep = inputs[:4]
        *edges_and_options, needs_grad = inputs[4:]
        rows, options = self._rows_and_options(tensors, keep, *edges_and_options)
        return self.forward(rows, *tensors, needs_grad=needs_grad, options=options)

    def _forward_fake(self, *inputs: Any) -> tuple[Tensor, ...]:
        x, targets, needs_grad = inputs[0], inputs[self.of_targets], inputs[-1]
        exact = torch.promote_types(x.dtype, torch.float32)
        shape = (targets.shape[0], *x.shape[1:])
        fakes = (
            x.new_empty(shape),
            x.new_empty(shape[:2], dtype=exact),
            x.new_empty(*shape[:2], shape[2] if needs_grad else 0),
        )
        return fakes[: self.num_outputs]

    def _setup_context(
        self, ctx: Context, inputs: tuple[Any, ...], output: tuple[Tensor, ...]
    ) -> None:
        *tensors, ctx.layout, loops, negative_slope, keep_scale, _ = inputs
        ctx.options = (loops, negative_slope, keep_scale)
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*tensors, *output)

    def _gradients(self, ctx: Context, grad_out: Tensor, *_: Tensor) -> tuple[Any, ...]:
        # torch.utils.checkpoint allows one look at the saved tensors.
        x, second, third, keep, index, indptr, *saved = ctx.saved_tensors
        tensors = (x, second, third, keep, *saved, grad_out)
        edges = (index, indptr, ctx.layout)
        grads = self.backward_op(*tensors, *edges, *ctx.options)
        return *grads, *[None] * 8

    def _backward(self, *inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
        *tensors, keep = inputs[:4]
        *saved, grad_out = inputs[4 : self.num_outputs + 5]
        edges_and_options = inputs[self.num_outputs + 5 :]
        rows, options = self._rows_and_options(tensors, keep, *edges_and_options)
        return self.backward(rows, *tensors, *saved, grad_out, options)

    def _forward_vmap(
        self, info: Any, in_dims: tuple[Any, ...], *inputs: Any
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        stacked = self._stacked(info, in_dims, inputs, 4)
        outputs = self.op(*stacked, *inputs[4:])
        runs = (info.batch_size, -1)
        return tuple(out.unflatten(1, runs) for out in outputs), (1,) * len(outputs)

    def _backward_vmap(
        self, info: Any, in_dims: tuple[Any, ...], *inputs: Any
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        count = self.num_outputs + 5
        stacked = self._stacked(info, in_dims, inputs, count)
        grads = self.backward_op(*stacked, *inputs[count:])
        runs, pairs = (info.batch_size, -1), zip(grads, self.heads, strict=True)
        return tuple(grad.unflatten(axis, runs) for grad, axis in pairs), self.heads

    def _stacked(
        self, info: Any, in_dims: tuple[Any, ...], inputs: tuple[Any, ...], count: int
    ) -> list[Tensor | None]:
        """The first inputs with the runs as more heads, shared ones repeated."""
        refuse_batched(in_dims[count:])
        axes = (*self.heads, *[1] * (count - 3))
        return [
            None
            if tensor is None
            else move_runs(tensor, dim, info.batch_size, axis).flatten(axis, axis + 1)
            for tensor, dim, axis in zip(inputs[:count], in_dims, axes, strict=False)
        ]


def _gat_forward(
    rows: EdgeRows, x: Tensor, *scores: Tensor, **options: Any
) -> tuple[Tensor, Tensor, Tensor]:
    return backend(x.device).gat_forward(rows, x, *scores, **options)


def _gat_backward(
    rows: EdgeRows, x: Tensor, *others: Any
) -> tuple[Tensor, Tensor, Tensor]:
    return backend(x.device).gat_backward(rows, x, *others)


gat_attention = AttentionOperator(
    "GATConv",
    "gat",
    "x source target",
    "out logsumexp jacobian",
    of_targets=2,
    heads=(1, 1, 1),
    forward=_gat_forward,
    backward=_gat_backward,
)
"""Sums of x, weighted by softmax(LeakyReLU(source + target))."""


def _gatv2_kernels(device: torch.device) -> ModuleType:
    """The kernels of a device; those of CUDA need Triton."""
    if device.type == "cuda":
        from unalike.nn import cuda_gatv2

        return cuda_gatv2
    from unalike.nn import cpu_gatv2

    return cpu_gatv2


def _gatv2_forward(
    rows: EdgeRows, left: Tensor, *others: Tensor, needs_grad: bool, options: Any
) -> tuple[Tensor, Tensor]:
    return _gatv2_kernels(left.device).gatv2_forward(rows, left, *others, options)


def _gatv2_backward(
    rows: EdgeRows, left: Tensor, *others: Any
) -> tuple[Tensor, Tensor, Tensor]:
    return _gatv2_kernels(left.device).gatv2_backward(rows, left, *others)


gatv2_attention = AttentionOperator(
    "GATv2Conv",
    "gatv2",
    "left right att",
    "out logsumexp",
    of_targets=1,
    heads=(1, 1, 0),
    forward=_gatv2_forward,
    backward=_gatv2_backward,
)
"""Sums of `left`, weighted by softmax(att · LeakyReLU(left + right))."""
