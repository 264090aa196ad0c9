"""The sparse product: rows times a dense matrix, differentiable and stackable."""

from __future__ import annotations

from typing import Any

from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import Function

from unalike.kernels import kernels_of
from unalike.kernels.rows import Rows


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
