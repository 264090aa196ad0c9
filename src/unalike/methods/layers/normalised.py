"""Normalised adjacency: D^-1/2 (A + I) D^-1/2, which is never written out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.adjacency import Adjacency
from unalike.kernels.spread import Spread
from unalike.methods.layers.affine import Affine, Hidden, value
from unalike.product import Propagation

Loops = Literal["all", "kept", "none"]

ADDED: dict[Loops, Callable[[Tensor], Tensor]] = {
    "all": lambda weights: (weights == 0).float(),
    "kept": torch.zeros_like,
    "none": torch.neg,
}
"""What is added to the weights of loops: every node has one, or its own, or none."""


MAX_FEATURES_PER_HIDDEN = 4
"""Input features for each output column up to which the features are propagated."""


@dataclass(frozen=True, eq=False)
class Normalised:
    """What a node gathers along the edges that enter it, scaled at both their ends.

    D holds the weight of the edges that enter a node, its loop included. A node
    without a loop gets one of weight 1, unless told otherwise (Kipf and Welling 2017).
    """

    spread: Spread
    flows: dict[Any, Any]
    """What was propagated before, kept with the adjacency."""
    loops: Loops

    @classmethod
    def of(cls, adjacency: Adjacency, *, loops: Loops = "all") -> Normalised:
        """The normalised form of an adjacency."""
        added = ADDED[loops](adjacency.weight_of_loops)
        weight = adjacency.weight_of_columns + added
        scale = torch.where(weight > 0, weight.rsqrt(), 0.0)
        return cls(Spread(adjacency.transposed, scale, added), adjacency.flows, loops)

    def __matmul__(self, x: Hidden) -> Float[Tensor, "nodes hidden"]:
        return self.powers([1], x) if isinstance(x, Affine) else self.power(1, x)

    def power(
        self, count: int, x: Float[Tensor, "nodes hidden"]
    ) -> Float[Tensor, "nodes hidden"]:
        """Â^count x."""
        for _ in range(count):
            x = Propagation.apply(self.spread, None, x, None)
        return x

    def powers(self, counts: Sequence[int], x: Hidden) -> Float[Tensor, "nodes blocks"]:
        """Â^count of each block of columns; x may be a deferred linear layer.

        Â^k (x W + b) is (Â^k x) W + (Â^k 1) b, and features do not change: where there
        are not many, Â^k x is computed once and no epoch does it again.
        """
        if isinstance(x, Affine) and propagates_features(x):
            pairs = zip(counts, x.chunk(len(counts)), strict=True)
            return torch.cat([self._power_of_linear(*pair) for pair in pairs], 1)
        blocks = zip(counts, value(x).chunk(len(counts), 1), strict=True)
        return torch.cat([self.power(*block) for block in blocks], 1)

    def _power_of_linear(
        self, count: int, linear: Affine
    ) -> Float[Tensor, "nodes hidden"]:
        assert linear.constant is not None and linear.weight is not None
        propagated = self.flown(linear.constant, count)
        product = propagated.to(linear.weight.dtype) @ linear.weight
        if linear.offset is None:
            return product
        ones = linear.rows.new_ones(len(linear.rows), 1)
        return product + self.power(count, ones) * linear.offset

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
        return Propagation.apply(self.spread, keep, x, start)


def propagates_features(linear: Affine) -> bool:
    """Are the constant features few enough to be propagated instead of the output?"""
    if linear.constant is None or linear.weight is None:
        return False
    num_features, width = linear.weight.shape
    return num_features <= MAX_FEATURES_PER_HIDDEN * width
