"""Normalised adjacency: D^-1/2 (A + I) D^-1/2, which is never written out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.adjacency import Adjacency
from unalike.kernels.spread import Spread
from unalike.product import Propagation

Loops = Literal["all", "kept", "none"]

ADDED: dict[Loops, Callable[[Tensor], Tensor]] = {
    "all": lambda weights: (weights == 0).float(),
    "kept": torch.zeros_like,
    "none": torch.neg,
}
"""What is added to the weights of loops: every node has one, or its own, or none."""


@dataclass(frozen=True, eq=False)
class Normalised:
    """What a node gathers along the edges that enter it, scaled at both their ends.

    D holds the weight of the edges that enter a node, its loop included. A node
    without a loop gets one of weight 1, unless told otherwise (Kipf and Welling 2017).
    """

    spread: Spread
    flows: dict[tuple[Loops, int, int], tuple[Tensor, Tensor]]
    """What was propagated before, kept with the adjacency."""
    loops: Loops

    @classmethod
    def of(cls, adjacency: Adjacency, *, loops: Loops = "all") -> Normalised:
        """The normalised form of an adjacency."""
        added = ADDED[loops](adjacency.weight_of_loops)
        weight = adjacency.weight_of_columns + added
        scale = torch.where(weight > 0, weight.rsqrt(), 0.0)
        return cls(Spread(adjacency.transposed, scale, added), adjacency.flows, loops)

    def __matmul__(
        self, x: Float[Tensor, "nodes hidden"]
    ) -> Float[Tensor, "nodes hidden"]:
        return Propagation.apply(self.spread, None, x, None)

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
        return Propagation.apply(self.spread, keep, x, start)
