"""Rectified sum: relu(b + x W + y V + …) with as few passes over memory as it takes."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import Function


def rectified_sum(
    offset: Float[Tensor, " hidden"],
    *terms: tuple[Float[Tensor, "nodes _"], Float[Tensor, "_ hidden"]],
) -> Float[Tensor, "nodes hidden"]:
    """relu of an offset and a sum of products, in the precision of the first factor."""
    kind = terms[0][0].dtype
    factors = [factor.to(kind) for term in terms for factor in term]
    return RectifiedSum.apply(offset.to(kind), *factors)


class RectifiedSum(Function):
    """The products add up inside the matrix kernels, and the result is cut in place.

    Written out, each sum and the relu would read and write all of the nodes again.
    """

    @staticmethod
    def forward(offset: Tensor, *factors: Tensor) -> Tensor:
        shape = (*factors[0].shape[:-1], offset.shape[-1])
        total = offset.unsqueeze(-2).expand(shape).contiguous()
        for x, weight in _pairs(factors):
            add = total.addmm_ if total.dim() == 2 else total.baddbmm_
            add(x, weight)
        return total.relu_()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(output, *inputs[1:])

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        total, *factors = ctx.saved_tensors
        slope = torch.ops.aten.threshold_backward(slope, total, 0)
        needed = ctx.needs_input_grad[1:]
        found: list[Tensor | None] = [_column_sums(slope)]
        for place, (x, weight) in enumerate(_pairs(factors)):
            to_x, to_weight = needed[2 * place : 2 * place + 2]
            found.append(slope @ weight.mT if to_x else None)
            found.append(x.mT @ slope if to_weight else None)
        return tuple(found)

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor
    ) -> tuple[Tensor, int]:
        """A stack of runs is a batch of matrices; what they share is not copied."""
        stacked = [
            one.expand(info.batch_size, *one.shape)
            if dim is None
            else one.movedim(dim, 0)
            for one, dim in zip(inputs, in_dims, strict=True)
        ]
        return RectifiedSum.apply(*stacked), 0


def _pairs(factors: tuple[Tensor, ...] | list[Tensor]) -> list[tuple[Tensor, Tensor]]:
    return list(zip(factors[::2], factors[1::2], strict=True))


def _column_sums(slope: Tensor) -> Tensor:
    """Sums over nodes, as a product, which cards take faster than a sum."""
    return (slope.new_ones(1, slope.shape[-2]) @ slope).squeeze(-2)
