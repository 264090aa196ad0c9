"""Normalised adjacency (symmetric, row, column), its powers and products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import Function

from unalike.data.adjacency import Adjacency
from unalike.nn.linear import DeferredLinear, TensorOrDeferred, value
from unalike.nn.sparse import NormalizedCSR, backend, runs_to_columns

Norm = Literal["both", "rows", "columns"]

POWERS: dict[Norm, tuple[float, float]] = {
    "both": (-0.5, -0.5),
    "rows": (-1.0, 0.0),
    "columns": (0.0, -1.0),
}
"""The powers of D before and after A: D^-1/2 A D^-1/2, D^-1 A and A D^-1."""

SelfLoops = Literal["all", "kept", "none"]

SELF_LOOP_WEIGHTS: dict[SelfLoops, Callable[[Tensor], Tensor]] = {
    "all": lambda weights: (weights == 0).float(),
    "kept": torch.zeros_like,
    "none": torch.neg,
}
"""The weight added to self-loops: every node has one, or its own, or none."""

MAX_FEATURES_PER_HIDDEN = 4
"""Input features for each output column up to which the features are propagated."""


class NormalizedSpMM(Function):
    """column_scale * S (A + L) S x + residual.

    It is linear, so that nothing of the size of x is saved for the gradient.
    """

    @staticmethod
    def forward(
        adjacency: NormalizedCSR,
        column_scale: Float[Tensor, " width"] | None,
        x: Float[Tensor, "nodes width"],
        residual: Float[Tensor, "nodes width"] | None,
    ) -> Float[Tensor, "nodes width"]:
        return backend(x.device).normalized_spmm(adjacency, x, column_scale, residual)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.csr, column_scale, _, residual = inputs
        ctx.save_for_backward(column_scale)
        ctx.residual_dtype = None if residual is None else residual.dtype

    @staticmethod
    def backward(
        ctx: Any, grad_out: Float[Tensor, "nodes width"]
    ) -> tuple[None, None, Tensor | None, Tensor | None]:
        grad_x = grad_residual = None
        (column_scale,) = ctx.saved_tensors
        if ctx.needs_input_grad[2]:
            grad_x = NormalizedSpMM.apply(ctx.csr.T, column_scale, grad_out, None)
        if ctx.needs_input_grad[3]:
            grad_residual = grad_out.to(ctx.residual_dtype)
        return None, None, grad_x, grad_residual

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[None, int | None, int | None, int | None],
        adjacency: NormalizedCSR,
        column_scale: Tensor | None,
        x: Tensor,
        residual: Tensor | None,
    ) -> tuple[Tensor, int]:
        """A stack of dense matrices is one matrix with more columns."""
        runs = info.batch_size
        stacked = (
            None if tensor is None else runs_to_columns(tensor, dim, runs)
            for tensor, dim in zip(
                (column_scale, x, residual), in_dims[1:], strict=True
            )
        )
        product = NormalizedSpMM.apply(adjacency, *stacked)
        return product.unflatten(1, (runs, -1)), 1


@dataclass(frozen=True, eq=False)
class NormalizedAdjacency:
    """The transposed adjacency, scaled by powers of the weighted in-degrees D.

    Rows without incoming edges are zero. No self-loops are added.
    """

    adjacency_t: Adjacency
    left_scale: Float[Tensor, "nodes 1"]
    right_scale: Float[Tensor, "nodes 1"]

    @classmethod
    def of(cls, adjacency: Adjacency, norm: Norm) -> NormalizedAdjacency:
        """An adjacency, normalised on both sides, by rows or by columns."""
        degrees = adjacency.column_sums[:, None]
        left, right = (
            torch.where(degrees > 0, degrees**power, 0.0) for power in POWERS[norm]
        )
        return cls(adjacency.T, left, right)

    def __matmul__(
        self, x: Float[Tensor, "nodes columns"]
    ) -> Float[Tensor, "nodes columns"]:
        return self.left_scale * (self.adjacency_t @ (self.right_scale * x))


def neighbour_mean(
    adjacency: Adjacency, x: Float[Tensor, "nodes width"], self_loops: SelfLoops
) -> Float[Tensor, "nodes width"]:
    """The weighted mean of x over incoming edges; 0 for a node without any."""
    added = SELF_LOOP_WEIGHTS[self_loops](adjacency.diagonal)[:, None]
    degrees = adjacency.column_sums[:, None] + added
    inverse = torch.where(degrees > 0, 1 / degrees, 0.0)
    total = adjacency.T @ x + added.to(x.dtype) * x
    return inverse.to(x.dtype) * total


@dataclass(frozen=True, eq=False)
class DirectedNorm:
    """P = D_out^-e A D_in^-e of a directed graph, and its transpose Q.

    P x sums over the targets of a node's edges, Q x over the sources of those that
    enter it. No self-loops are added.
    """

    adjacency: Adjacency
    out_scale: Float[Tensor, "nodes 1"]
    in_scale: Float[Tensor, "nodes 1"]

    @classmethod
    def of(cls, adjacency: Adjacency, exponent: float = 0.5) -> DirectedNorm:
        scales = (
            torch.where(degrees > 0, degrees**-exponent, 0.0)[:, None]
            for degrees in (adjacency.row_sums, adjacency.column_sums)
        )
        return cls(adjacency, *scales)

    def out(self, x: Float[Tensor, "nodes width"]) -> Float[Tensor, "nodes width"]:
        """P x: over the nodes that a node points at."""
        scaled = self.in_scale.to(x.dtype) * x
        return self.out_scale.to(x.dtype) * (self.adjacency @ scaled)

    def into(self, x: Float[Tensor, "nodes width"]) -> Float[Tensor, "nodes width"]:
        """Q x: over the nodes that point at a node."""
        scaled = self.out_scale.to(x.dtype) * x
        return self.in_scale.to(x.dtype) * (self.adjacency.T @ scaled)


@dataclass(frozen=True, eq=False)
class GCNNorm:
    """Â = D^-1/2 (A + I) D^-1/2 of the transposed adjacency (Kipf and Welling 2017).

    D holds the weighted in-degrees, self-loops included. Nodes with a self-loop keep
    its weight; `self_loops` can leave all as they are or remove them.
    """

    csr: NormalizedCSR
    cache: dict[Any, Any]
    """Propagated features, stored with the adjacency."""
    self_loops: SelfLoops

    @classmethod
    def of(cls, adjacency: Adjacency, *, self_loops: SelfLoops = "all") -> GCNNorm:
        added = SELF_LOOP_WEIGHTS[self_loops](adjacency.diagonal)
        degrees = adjacency.column_sums + added
        scale = torch.where(degrees > 0, degrees.rsqrt(), 0.0)
        csr = NormalizedCSR(adjacency.T, scale, added)
        return cls(csr, adjacency.cache, self_loops)

    def __matmul__(self, x: TensorOrDeferred) -> Float[Tensor, "nodes hidden"]:
        return self.power(1, x) if isinstance(x, Tensor) else self.powers([1], x)

    def power(
        self, count: int, x: Float[Tensor, "nodes hidden"]
    ) -> Float[Tensor, "nodes hidden"]:
        """Â^count x."""
        for _ in range(count):
            x = NormalizedSpMM.apply(self.csr, None, x, None)
        return x

    def powers(
        self, counts: Sequence[int], x: TensorOrDeferred
    ) -> Float[Tensor, "nodes blocks"]:
        """Â^count of each block of columns; x may be a deferred linear layer.

        Â^k (x W + b) = (Â^k x) W + (Â^k 1) b: if x are constant features, and few
        enough, Â^k x is computed in the first epoch only.
        """
        if isinstance(x, DeferredLinear) and propagates_features(x):
            pairs = zip(counts, x.chunk(len(counts)), strict=True)
            return torch.cat([self._power_of_linear(*pair) for pair in pairs], 1)
        blocks = zip(counts, value(x).chunk(len(counts), 1), strict=True)
        return torch.cat([self.power(*block) for block in blocks], 1)

    def _power_of_linear(
        self, count: int, linear: DeferredLinear
    ) -> Float[Tensor, "nodes hidden"]:
        assert linear.constant is not None and linear.weight is not None
        propagated = self.cached_power(linear.constant, count)
        product = propagated.to(linear.weight.dtype) @ linear.weight
        if linear.bias is None:
            return product
        ones = linear.x.new_ones(len(linear.x), 1)
        return product + self.power(count, ones) * linear.bias

    @torch.no_grad()
    def cached_power(
        self, x: Float[Tensor, "nodes features"], count: int
    ) -> Float[Tensor, "nodes features"]:
        """Â^count x of constant features, cached with x, whose id is not used again."""
        key = (self.self_loops, count, id(x))
        if key not in self.cache:
            exact = x.to(torch.promote_types(x.dtype, torch.float32))
            self.cache[key] = (x, self.power(count, exact))
        return self.cache[key][1]

    def appnp_step(
        self,
        residual: Float[Tensor, "nodes hidden"],
        alpha: Float[Tensor, ""],
        x: Float[Tensor, "nodes hidden"],
    ) -> Float[Tensor, "nodes hidden"]:
        """(1 - alpha) Â x + residual; the residual is multiplied by alpha already."""
        column_scale = (1 - alpha).expand(x.shape[1])
        return NormalizedSpMM.apply(self.csr, column_scale, x, residual)


def propagates_features(linear: DeferredLinear) -> bool:
    """Are the constant features few enough to be propagated instead of the output?"""
    if linear.constant is None or linear.weight is None:
        return False
    num_features, width = linear.weight.shape
    return num_features <= MAX_FEATURES_PER_HIDDEN * width
