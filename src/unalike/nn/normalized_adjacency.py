"""Sparse products: with rows, and with scaled rows, differentiable and stackable."""

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

# Sparse products: with rows, and with scaled rows, differentiable and stackable.


class NormalizedSpMM(Function):
    """A spread's product; of each column some is kept, and a start is added.

    It is linear, so that nothing of the size of its input is kept for its gradient.
    """

    @staticmethod
    def forward(
        spread: NormalizedCSR,
        keep: Float[Tensor, " width"] | None,
        dense: Float[Tensor, "nodes width"],
        start: Float[Tensor, "nodes width"] | None,
    ) -> Float[Tensor, "nodes width"]:
        return backend(dense.device).normalized_spmm(spread, dense, keep, start)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.csr, keep, _, start = inputs
        ctx.save_for_backward(keep)
        ctx.start_kind = None if start is None else start.dtype

    @staticmethod
    def backward(
        ctx: Any, gradient: Float[Tensor, "nodes width"]
    ) -> tuple[None, None, Tensor | None, Tensor | None]:
        to_dense = to_start = None
        (keep,) = ctx.saved_tensors
        if ctx.needs_input_grad[2]:
            to_dense = NormalizedSpMM.apply(ctx.csr.T, keep, gradient, None)
        if ctx.needs_input_grad[3]:
            to_start = gradient.to(ctx.start_kind)
        return None, None, to_dense, to_start

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[None, int | None, int | None, int | None],
        spread: NormalizedCSR,
        keep: Tensor | None,
        dense: Tensor,
        start: Tensor | None,
    ) -> tuple[Tensor, int]:
        """A stack of dense matrices is one matrix with more columns."""
        runs = info.batch_size
        stacked = (
            None if one is None else runs_to_columns(one, dim, runs)
            for one, dim in zip((keep, dense, start), in_dims[1:], strict=True)
        )
        product = NormalizedSpMM.apply(spread, *stacked)
        return product.unflatten(1, (runs, -1)), 1


# Flow: edges scaled at one end or both, with no loops added.


Norm = Literal["both", "rows", "columns"]

POWERS: dict[Norm, tuple[float, float]] = {
    "both": (-0.5, -0.5),
    "rows": (-1.0, 0.0),
    "columns": (0.0, -1.0),
}
"""The powers of D before and after A: D^-1/2 A D^-1/2, D^-1 A and A D^-1."""


@dataclass(frozen=True, eq=False)
class NormalizedAdjacency:
    """What a node gathers along the edges that enter it.

    D holds the weight of these edges; a node that none enters gathers nothing.
    """

    adjacency_t: Adjacency
    left_scale: Float[Tensor, "nodes 1"]
    right_scale: Float[Tensor, "nodes 1"]

    @classmethod
    def of(cls, adjacency: Adjacency, by: Norm) -> NormalizedAdjacency:
        """The edges of an adjacency, scaled in one of the ways."""
        weight = adjacency.column_sums[:, None]
        before, after = (
            torch.where(weight > 0, weight**power, 0.0) for power in POWERS[by]
        )
        return cls(adjacency.T, before, after)

    def __matmul__(
        self, x: Float[Tensor, "nodes columns"]
    ) -> Float[Tensor, "nodes columns"]:
        return self.left_scale * (self.adjacency_t @ (self.right_scale * x))


# Normalised adjacency: D^-1/2 (A + I) D^-1/2, which is never written out.


SelfLoops = Literal["all", "kept", "none"]

SELF_LOOP_WEIGHTS: dict[SelfLoops, Callable[[Tensor], Tensor]] = {
    "all": lambda weights: (weights == 0).float(),
    "kept": torch.zeros_like,
    "none": torch.neg,
}
"""What is added to the weights of loops: every node has one, or its own, or none."""


MAX_FEATURES_PER_HIDDEN = 4
"""Input features for each output column up to which the features are propagated."""


@dataclass(frozen=True, eq=False)
class GCNNorm:
    """What a node gathers along the edges that enter it, scaled at both their ends.

    D holds the weight of the edges that enter a node, its loop included. A node
    without a loop gets one of weight 1, unless told otherwise (Kipf and Welling 2017).
    """

    csr: NormalizedCSR
    flows: dict[Any, Any]
    """What was propagated before, kept with the adjacency."""
    loops: SelfLoops

    @classmethod
    def of(cls, adjacency: Adjacency, *, loops: SelfLoops = "all") -> GCNNorm:
        """The normalised form of an adjacency."""
        added = SELF_LOOP_WEIGHTS[loops](adjacency.diagonal)
        weight = adjacency.column_sums + added
        scale = torch.where(weight > 0, weight.rsqrt(), 0.0)
        return cls(NormalizedCSR(adjacency.T, scale, added), adjacency.cache, loops)

    def __matmul__(self, x: TensorOrDeferred) -> Float[Tensor, "nodes hidden"]:
        return (
            self.powers([1], x) if isinstance(x, DeferredLinear) else self.power(1, x)
        )

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

        Â^k (x W + b) is (Â^k x) W + (Â^k 1) b, and features do not change: where there
        are not many, Â^k x is computed once and no epoch does it again.
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
        ones = linear.rows.new_ones(len(linear.rows), 1)
        return product + self.power(count, ones) * linear.bias

    @torch.no_grad()
    def cached_power(
        self, x: Float[Tensor, "nodes features"], count: int
    ) -> Float[Tensor, "nodes features"]:
        """The product taken `count` times of what nothing learns, the first time only.

        x is held as well, so that no other can take its place in memory.
        """
        key = (self.loops, count, id(x))
        if key not in self.flows:
            exact = x.to(torch.promote_types(x.dtype, torch.float32))
            self.flows[key] = (x, self.power(count, exact))
        return self.flows[key][1]

    def appnp_step(
        self,
        start: Float[Tensor, "nodes hidden"],
        alpha: Float[Tensor, ""],
        x: Float[Tensor, "nodes hidden"],
    ) -> Float[Tensor, "nodes hidden"]:
        """(1 − α) of the product, and a start that was taken times α before."""
        keep = (1 - alpha).expand(x.shape[1])
        return NormalizedSpMM.apply(self.csr, keep, x, start)


def propagates_features(linear: DeferredLinear) -> bool:
    """Are the constant features few enough to be propagated instead of the output?"""
    if linear.constant is None or linear.weight is None:
        return False
    num_features, width = linear.weight.shape
    return num_features <= MAX_FEATURES_PER_HIDDEN * width
