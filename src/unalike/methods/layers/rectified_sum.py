"""Rectified sum: relu(b + x W + y V + …) with as few passes over memory as it takes."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import Function

from unalike.kernels import kernels_of
from unalike.methods.layers.affine import Affine, product_like

KERNELS = "unalike.kernels.rectified"


def rectified_sum(
    offset: Float[Tensor, " hidden"] | None, *terms: Affine
) -> Float[Tensor, "nodes hidden"]:
    """relu of an offset and a sum of products.

    A single term may be without a weight, all others have one.
    """
    rows, weight = terms[0].rows, terms[0].weight
    if weight is None:
        return torch.relu(terms[0].value())
    given = [offset, *(term.offset for term in terms)]
    offsets = [one for one in given if one is not None]
    total = torch.stack(offsets or [weight.new_zeros(weight.shape[1])]).sum(0)
    factors = [one.to(kind_of(rows)) for term in terms for one in term.factors]
    return RectifiedSum.apply(total, *factors)


def kind_of(rows: Float[Tensor, "nodes _"]) -> torch.dtype:
    """The precision of a product: that of its rows, or the one that is set for all."""
    device = rows.device.type
    if torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return rows.dtype


class RectifiedSum(Function):
    """The products add up inside the matrix kernels, and the result is cut in place.

    Written out, each sum and the relu would read and write all of the nodes again.
    """

    @staticmethod
    def forward(offset: Tensor, *factors: Tensor) -> Tensor:
        first, *further = _pairs(factors)
        total = first[0] @ first[1]
        for x, weight in further:
            add = total.addmm_ if total.dim() == 2 else total.baddbmm_
            add(x, weight)
        return kernels_of(total.device, KERNELS).rectify(total, offset)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(output, *inputs[1:])

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        total, *factors = ctx.saved_tensors
        slope, sums = kernels_of(slope.device, KERNELS).rectify_back(slope, total)
        needed = ctx.needs_input_grad[1:]
        found: list[Tensor | None] = [sums]
        for place, (x, weight) in enumerate(_pairs(factors)):
            to_x, to_weight = needed[2 * place : 2 * place + 2]
            found.append(product_like(x, slope, weight.mT) if to_x else None)
            found.append(product_like(weight, x.mT, slope) if to_weight else None)
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
