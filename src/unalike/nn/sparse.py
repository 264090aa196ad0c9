"""Kernels: the few loops that touch sparse memory, for each kind of device.

Each module of this package offers the same functions. `plain` says what they mean in
a few tensor operations and is the oracle of the tests."""

from __future__ import annotations

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

# Kernels: the few loops that touch sparse memory, for each kind of device.
#
# Each module of this package offers the same functions. `plain` says what they mean in
# a few tensor operations and is the oracle of the tests.


def backend(device: torch.device) -> ModuleType:
    """The kernels that run on a device; those of a GPU are imported when first needed."""
    if device.type == "cuda":
        from unalike.nn import cuda

        return cuda
    from unalike.nn import cpu

    return cpu


# Matrix units: what a card wants of factors that it multiplies with rounding.


ALIGNMENT = 8
"""Numbers that begin at a multiple of this are read without detour."""


def uses_tensor_cores(kind: torch.dtype) -> bool:
    """Are products of such numbers rounded, as matrix units do?"""
    exact = torch.get_float32_matmul_precision() == "highest"
    return kind == torch.bfloat16 or (kind == torch.float32 and not exact)


def padding_to_multiple(count: int) -> int:
    """The numbers between the end of some and the next aligned place."""
    return -count % ALIGNMENT


def pad_last_dim(x: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows aligned"]:
    """Rows of which each begins at an aligned place, where that pays."""
    room = padding_to_multiple(x.shape[-1])
    wanted = room and x.is_cuda and uses_tensor_cores(x.dtype)
    return F.pad(x, (0, room)) if wanted else x


# Crowded: sparse rows so full that a card multiplies them faster with their zeros.


MIN_DENSITY = 0.08
"""Share of entries from which rows are crowded, where matrix units take the product."""
MIN_COLUMNS = 1024
"""Columns of the other factor from which it pays to write the zeros down."""
MIN_COLUMNS_PROPAGATION = 64
"""The same where nothing but the product is wanted, no step along it."""
MAX_MEMORY_SHARE = 0.2
"""Share of what is free that the zeros may take."""


def dense_if_faster(
    rows: CSRMatrix, other: Float[Tensor, "columns width"], least: int = MIN_COLUMNS
) -> Float[Tensor, "rows columns"] | None:
    """Crowded rows with their zeros, made once; None of others.

    They are rounded as the other factor is.
    """
    numbers = (len(rows.indptr) - 1) * rows.num_cols
    crowded = len(rows.indices) > MIN_DENSITY * numbers
    if not crowded or other.shape[1] < least or not uses_tensor_cores(other.dtype):
        return None
    key = ("filled", other.dtype)
    if key not in rows.cache:
        rows.cache[key] = to_dense_padded(rows, other.dtype)
    found: Tensor | None = rows.cache[key]
    return found


def to_dense_padded(
    rows: CSRMatrix, dtype: torch.dtype
) -> Float[Tensor, "rows columns"] | None:
    """Rows with their zeros, where there is room for them."""
    height, device = len(rows.indptr) - 1, rows.indices.device
    if height * rows.num_cols * dtype.itemsize > MAX_MEMORY_SHARE * free_memory(device):
        return None
    row = torch.arange(height, device=device).repeat_interleave(rows.degrees)
    aligned = rows.num_cols + padding_to_multiple(rows.num_cols)
    whole = torch.zeros(height, aligned, dtype=dtype, device=device)[:, : rows.num_cols]
    ones = torch.ones(1, dtype=dtype, device=device)
    values = ones if rows.values is None else rows.values.to(dtype)
    whole[row, rows.indices.long()] = values
    return whole


# Spread: a sparse matrix, scaled at both ends, with something added to its loops.


@dataclass(frozen=True, eq=False)
class NormalizedCSR:
    """S (A + L) S, where S and L are diagonal: nothing is kept for each entry."""

    csr: CSRMatrix
    scale: Float[Tensor, " nodes"]
    self_loop_weight: Float[Tensor, " nodes"]

    @property
    def T(self) -> NormalizedCSR:
        """The same with rows and columns exchanged."""
        return NormalizedCSR(self.csr.T, self.scale, self.self_loop_weight)


# Sparse products: with rows, and with scaled rows, differentiable and stackable.


class SpMM(Function):
    """Forward and backward are both gathers over rows, so no sum depends on timing."""

    @staticmethod
    def forward(
        rows: CSRMatrix, dense: Float[Tensor, "columns width"]
    ) -> Float[Tensor, "rows width"]:
        return backend(dense.device).spmm(rows, dense)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.rows = inputs[0]

    @staticmethod
    def backward(
        ctx: Any, gradient: Float[Tensor, "rows width"]
    ) -> tuple[None, Float[Tensor, "columns width"]]:
        return None, SpMM.apply(ctx.rows.T, gradient)

    @staticmethod
    def vmap(
        _: Any, in_dims: tuple[None, int], rows: CSRMatrix, dense: Tensor
    ) -> tuple[Tensor, int]:
        """A stack of dense matrices is one matrix with more columns."""
        stacked = dense.movedim(in_dims[1], 1)
        product = SpMM.apply(rows, stacked.flatten(1))
        return product.unflatten(1, stacked.shape[1:]), 1


def runs_to_columns(
    stack: Tensor, dim: int | None, runs: int
) -> Float[Tensor, "*nodes columns"]:
    """The columns of all runs next to each other, shared ones repeated."""
    if dim is None:
        repeated = stack.unsqueeze(-2).expand(*stack.shape[:-1], runs, -1)
        return repeated.flatten(-2)
    return stack.movedim(dim, -2).flatten(-2)
