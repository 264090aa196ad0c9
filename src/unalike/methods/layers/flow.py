"""Flow: edges scaled at one end or both, with no loops added."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.adjacency import Adjacency

By = Literal["both", "rows", "columns"]

POWERS: dict[By, tuple[float, float]] = {
    "both": (-0.5, -0.5),
    "rows": (-1.0, 0.0),
    "columns": (0.0, -1.0),
}
"""The powers of D before and after A: D^-1/2 A D^-1/2, D^-1 A and A D^-1."""


@dataclass(frozen=True, eq=False)
class Flow:
    """What a node gathers along the edges that enter it.

    D holds the weight of these edges; a node that none enters gathers nothing.
    """

    entering: Adjacency
    before: Float[Tensor, "nodes 1"]
    after: Float[Tensor, "nodes 1"]

    @classmethod
    def of(cls, adjacency: Adjacency, by: By) -> Flow:
        """The edges of an adjacency, scaled in one of the ways."""
        weight = adjacency.weight_of_columns[:, None]
        before, after = (
            torch.where(weight > 0, weight**power, 0.0) for power in POWERS[by]
        )
        return cls(adjacency.transposed, before, after)

    def __matmul__(
        self, x: Float[Tensor, "nodes columns"]
    ) -> Float[Tensor, "nodes columns"]:
        return self.before * (self.entering @ (self.after * x))
