"""Attended sum: what a node gathers from neighbours that it weighs by scores."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import Function, once_differentiable

from unalike.kernels import attention, kernels_of
from unalike.kernels.rows import Rows


def attended_sum(
    rows: Rows,
    x: Float[Tensor, "nodes heads width"],
    source: Float[Tensor, "nodes heads"],
    target: Float[Tensor, "nodes heads"],
) -> Float[Tensor, "nodes heads width"]:
    """Node i gathers x_j from itself and those that point at it, weighed by softmax.

    The weight of j is exp(LeakyReLU(source_j + target_i)), over the sum of all of i's.
    """
    return AttendedSum.apply(rows, torch.is_grad_enabled(), x, source, target)[0]


class AttendedSum(Function):
    """Weights are never stored: backward finds them again from the logs of their sums.

    Forward gathers along edges that enter a node, and what the slope of its target
    needs with it; the slopes of x and source gather along edges that leave it.
    """

    @staticmethod
    def forward(
        rows: Rows, learning: bool, x: Tensor, source: Tensor, target: Tensor
    ) -> attention.Attended:
        kernels = kernels_of(x.device, attention.__name__)
        return kernels.attend(rows, x, source, target, learning=learning)

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Any, ...], output: attention.Attended
    ) -> None:
        ctx.rows = inputs[0]
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*inputs[2:], *output)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        kernels = kernels_of(slope.device, attention.__name__)
        return None, None, *kernels.attend_back(ctx.rows, *ctx.saved_tensors, slope)

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        rows: Rows,
        learning: bool,
        *inputs: Tensor,
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        """A stack of runs is more heads."""
        runs = info.batch_size
        heads = [
            one[:, None].expand(-1, runs, *one.shape[1:])
            if dim is None
            else one.movedim(dim, 1)
            for one, dim in zip(inputs, in_dims[2:], strict=True)
        ]
        found = AttendedSum.apply(rows, learning, *(one.flatten(1, 2) for one in heads))
        return tuple(one.unflatten(1, (runs, -1)) for one in found), (1, 1, 1)
