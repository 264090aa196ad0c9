"""Sparse products: with rows, and with scaled rows, differentiable and stackable."""

from __future__ import annotations

from typing import Any

from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import Function

from unalike.kernels import kernels_of
from unalike.kernels.rows import Rows
from unalike.kernels.spread import Spread


class SparseProduct(Function):
    """Forward and backward are both gathers over rows, so no sum depends on timing."""

    @staticmethod
    def forward(
        rows: Rows, dense: Float[Tensor, "columns width"]
    ) -> Float[Tensor, "rows width"]:
        return kernels_of(dense.device).gather(rows, dense)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.rows = inputs[0]

    @staticmethod
    def backward(
        ctx: Any, gradient: Float[Tensor, "rows width"]
    ) -> tuple[None, Float[Tensor, "columns width"]]:
        return None, SparseProduct.apply(ctx.rows.transposed, gradient)

    @staticmethod
    def vmap(
        _: Any, in_dims: tuple[None, int], rows: Rows, dense: Tensor
    ) -> tuple[Tensor, int]:
        """A stack of dense matrices is one matrix with more columns."""
        stacked = dense.movedim(in_dims[1], 1)
        product = SparseProduct.apply(rows, stacked.flatten(1))
        return product.unflatten(1, stacked.shape[1:]), 1


class Propagation(Function):
    """A spread's product; of each column some is kept, and a start is added.

    It is linear, so that nothing of the size of its input is kept for its gradient.
    """

    @staticmethod
    def forward(
        spread: Spread,
        keep: Float[Tensor, " width"] | None,
        dense: Float[Tensor, "nodes width"],
        start: Float[Tensor, "nodes width"] | None,
    ) -> Float[Tensor, "nodes width"]:
        return kernels_of(dense.device).propagate(spread, dense, keep, start)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.spread, keep, _, start = inputs
        ctx.save_for_backward(keep)
        ctx.start_kind = None if start is None else start.dtype

    @staticmethod
    def backward(
        ctx: Any, gradient: Float[Tensor, "nodes width"]
    ) -> tuple[None, None, Tensor | None, Tensor | None]:
        to_dense = to_start = None
        (keep,) = ctx.saved_tensors
        if ctx.needs_input_grad[2]:
            to_dense = Propagation.apply(ctx.spread.transposed, keep, gradient, None)
        if ctx.needs_input_grad[3]:
            to_start = gradient.to(ctx.start_kind)
        return None, None, to_dense, to_start

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[None, int | None, int | None, int | None],
        spread: Spread,
        keep: Tensor | None,
        dense: Tensor,
        start: Tensor | None,
    ) -> tuple[Tensor, int]:
        """A stack of dense matrices is one matrix with more columns."""
        runs = info.batch_size
        stacked = (
            None if one is None else _side_by_side(one, dim, runs)
            for one, dim in zip((keep, dense, start), in_dims[1:], strict=True)
        )
        product = Propagation.apply(spread, *stacked)
        return product.unflatten(1, (runs, -1)), 1


def _side_by_side(
    stack: Tensor, dim: int | None, runs: int
) -> Float[Tensor, "*nodes columns"]:
    """The columns of all runs next to each other, shared ones repeated."""
    if dim is None:
        repeated = stack.unsqueeze(-2).expand(*stack.shape[:-1], runs, -1)
        return repeated.flatten(-2)
    return stack.movedim(dim, -2).flatten(-2)
