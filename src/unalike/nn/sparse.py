"""Sparse-dense products with gradients, and the choice of CPU or CUDA kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import Function
from torch.nn import functional as F

from unalike.data.csr import CSRMatrix
from unalike.system import free_memory

Dense = Float[Tensor, "_ width"]
"""A dense factor or product; the number of rows depends on the sparse matrix."""
Vector = Float[Tensor, " width"]

ALIGNMENT = 8
"""Tensor cores read rows faster whose first value is at a multiple of this."""
MIN_DENSITY = 0.08
"""Density from which tensor cores multiply a matrix faster as a dense one."""
MIN_COLUMNS = 1024
"""Columns of the other factor from which a dense copy pays."""
MIN_COLUMNS_PROPAGATION = 64
"""The same for a product without an optimizer step in it."""
MAX_MEMORY_SHARE = 0.2
"""Fraction of the free memory that a dense copy may take."""


def backend(device: torch.device) -> ModuleType:
    """The kernels of a device: `nn.cpu`, or `nn.cuda`, which needs Triton."""
    if device.type == "cuda":
        from unalike.nn import cuda

        return cuda
    from unalike.nn import cpu

    return cpu


class SpMM(Function):
    """CSR matrix @ dense; the backward pass is an SpMM with the transpose."""

    @staticmethod
    def forward(rows: CSRMatrix, dense: Dense) -> Dense:
        return backend(dense.device).spmm(rows, dense)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.rows = inputs[0]

    @staticmethod
    def backward(ctx: Any, grad_out: Dense) -> tuple[None, Dense]:
        return None, SpMM.apply(ctx.rows.T, grad_out)

    @staticmethod
    def vmap(
        _: Any, in_dims: tuple[None, int], rows: CSRMatrix, dense: Tensor
    ) -> tuple[Tensor, int]:
        """A stack of dense matrices is one matrix with more columns."""
        stacked = dense.movedim(in_dims[1], 1)
        product = SpMM.apply(rows, stacked.flatten(1))
        return product.unflatten(1, stacked.shape[1:]), 1


@dataclass(frozen=True, eq=False)
class NormalizedCSR:
    """S (A + L) S with diagonal S and L, without a stored value for each entry."""

    csr: CSRMatrix
    scale: Float[Tensor, " nodes"]
    self_loop_weight: Float[Tensor, " nodes"]

    @property
    def T(self) -> NormalizedCSR:
        return NormalizedCSR(self.csr.T, self.scale, self.self_loop_weight)


def move_runs(stack: Tensor, dim: int | None, runs: int, to: int = 0) -> Tensor:
    """A tensor under vmap with the axis of runs at `to`; a shared one is repeated."""
    if dim is not None:
        return stack.movedim(dim, to)
    repeated = stack.unsqueeze(to)
    sizes = [-1] * repeated.dim()
    sizes[to] = runs
    return repeated.expand(sizes)


def runs_to_columns(
    stack: Tensor, dim: int | None, runs: int
) -> Float[Tensor, "*nodes columns"]:
    """The columns of all runs next to each other, shared ones repeated."""
    return move_runs(stack, dim, runs, -2).flatten(-2)


def scale_and_add_(
    product: Dense, scale: Float[Tensor, " rows"] | None, residual: Dense | None
) -> Dense:
    """scale * product + residual, in place."""
    product = product if scale is None else product.mul_(scale[:, None])
    return product if residual is None else product.add_(residual)


def normalized_product(
    adjacency: NormalizedCSR,
    multiply: Callable[[Dense], Dense],
    dense: Dense,
    column_scale: Vector | None,
    residual: Dense | None,
) -> Dense:
    """column_scale * S (A + L) S dense + residual, given the product with A."""
    dtype = torch.promote_types(dense.dtype, torch.float32)
    scale, loop_weight = (
        vector[:, None].to(dtype)
        for vector in (adjacency.scale, adjacency.self_loop_weight)
    )
    scaled = scale * dense
    out = multiply(scaled).addcmul_(loop_weight, scaled).mul_(scale)
    if column_scale is not None:
        out.mul_(column_scale)
    if residual is not None:
        out.add_(residual)
    return out.to(dense.dtype)


def dense_if_faster(
    rows: CSRMatrix, other: Dense, min_columns: int = MIN_COLUMNS
) -> Float[Tensor, "rows columns"] | None:
    """A cached dense copy of a CSR matrix where tensor cores multiply it faster.

    It has the dtype of the other factor. None where the sparse product is faster.
    """
    num_values = (len(rows.indptr) - 1) * rows.num_cols
    is_dense = len(rows.indices) > MIN_DENSITY * num_values
    wide = other.shape[1] >= min_columns
    if not is_dense or not wide or not uses_tensor_cores(other.dtype):
        return None
    key = ("padded dense", other.dtype)
    if key not in rows.cache:
        rows.cache[key] = to_dense_padded(rows, other.dtype)
    matrix: Tensor | None = rows.cache[key]
    return matrix


def to_dense_padded(
    rows: CSRMatrix, dtype: torch.dtype
) -> Float[Tensor, "rows columns"] | None:
    """A dense copy with aligned rows, None where memory is short."""
    num_rows, device = len(rows.indptr) - 1, rows.indices.device
    num_bytes = num_rows * rows.num_cols * dtype.itemsize
    if num_bytes > MAX_MEMORY_SHARE * free_memory(device):
        return None
    row = torch.arange(num_rows, device=device).repeat_interleave(rows.degrees)
    aligned = rows.num_cols + padding_to_multiple(rows.num_cols)
    padded = torch.zeros(num_rows, aligned, dtype=dtype, device=device)
    dense = padded[:, : rows.num_cols]
    ones = torch.ones(1, dtype=dtype, device=device)
    values = ones if rows.values is None else rows.values.to(dtype)
    dense[row, rows.indices.long()] = values
    return dense


def uses_tensor_cores(dtype: torch.dtype) -> bool:
    """Do tensor cores multiply matrices of this dtype, with their rounding?"""
    exact = torch.get_float32_matmul_precision() == "highest"
    return dtype == torch.bfloat16 or (dtype == torch.float32 and not exact)


def padding_to_multiple(count: int) -> int:
    """How much is missing to the next multiple of ALIGNMENT."""
    return -count % ALIGNMENT


def pad_last_dim(x: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows aligned"]:
    """x with aligned rows, where tensor cores multiply it."""
    padding = padding_to_multiple(x.shape[-1])
    pays = padding and x.is_cuda and uses_tensor_cores(x.dtype)
    return F.pad(x, (0, padding)) if pays else x
