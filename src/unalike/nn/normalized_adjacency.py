"""Sparse products: with rows, and with scaled rows, differentiable and stackable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import Function

from unalike.data.adjacency import Adjacency
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
            to_dense = NormalizedSpMM.apply(ctx.spread.T, keep, gradient, None)
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

    entering: Adjacency
    before: Float[Tensor, "nodes 1"]
    after: Float[Tensor, "nodes 1"]

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
        return self.before * (self.entering @ (self.after * x))


# Normalised adjacency: D^-1/2 (A + I) D^-1/2, which is never written out.


SelfLoops = Literal["all", "kept", "none"]

SELF_LOOP_WEIGHTS: dict[SelfLoops, Callable[[Tensor], Tensor]] = {
    "all": lambda weights: (weights == 0).float(),
    "kept": torch.zeros_like,
    "none": torch.neg,
}
"""What is added to the weights of loops: every node has one, or its own, or none."""


@dataclass(frozen=True, eq=False)
class GCNNorm:
    """What a node gathers along the edges that enter it, scaled at both their ends.

    D holds the weight of the edges that enter a node, its loop included. A node
    without a loop gets one of weight 1, unless told otherwise (Kipf and Welling 2017).
    """

    spread: NormalizedCSR
    flows: dict[tuple[SelfLoops, int, int], tuple[Tensor, Tensor]]
    """What was propagated before, kept with the adjacency."""
    loops: SelfLoops

    @classmethod
    def of(cls, adjacency: Adjacency, *, loops: SelfLoops = "all") -> GCNNorm:
        """The normalised form of an adjacency."""
        added = SELF_LOOP_WEIGHTS[loops](adjacency.diagonal)
        weight = adjacency.column_sums + added
        scale = torch.where(weight > 0, weight.rsqrt(), 0.0)
        return cls(NormalizedCSR(adjacency.T, scale, added), adjacency.cache, loops)

    def __matmul__(
        self, x: Float[Tensor, "nodes hidden"]
    ) -> Float[Tensor, "nodes hidden"]:
        return NormalizedSpMM.apply(self.spread, None, x, None)

    def power(
        self, count: int, x: Float[Tensor, "nodes hidden"]
    ) -> Float[Tensor, "nodes hidden"]:
        """The product taken `count` times."""
        for _ in range(count):
            x = self @ x
        return x

    @torch.no_grad()
    def flown(
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

    def back_to(
        self,
        start: Float[Tensor, "nodes hidden"],
        alpha: Float[Tensor, ""],
        x: Float[Tensor, "nodes hidden"],
    ) -> Float[Tensor, "nodes hidden"]:
        """(1 − α) of the product, and a start that was taken times α before."""
        keep = (1 - alpha).expand(x.shape[1])
        return NormalizedSpMM.apply(self.spread, keep, x, start)
