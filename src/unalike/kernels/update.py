"""Update: what one AdamW step needs to know of a stack of weights."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of a stack of runs, with the moments of AdamW and the best so far."""

    now: Float[Tensor, "rows runs width"]
    first: Float[Tensor, "rows runs width"]
    """Moving average of the gradient."""
    second: Float[Tensor, "rows runs width"]
    """Moving average of its square."""
    best: Float[Tensor, "rows runs width"]
    """The weights of each run's best epoch."""
    half: Float[Tensor, "rows runs width"] | None = None
    """A bfloat16 copy to gather from, where it is asked for."""

    @classmethod
    def fresh(cls, now: Float[Tensor, "rows runs width"], *, half: bool) -> Weights:
        """Weights before the first step."""
        zeros = torch.zeros_like
        copy = now.to(torch.bfloat16) if half else None
        return cls(now, zeros(now), zeros(now), now.clone(), copy)

    @property
    def to_gather(self) -> Float[Tensor, "rows runs width"]:
        """What a sparse product reads."""
        return self.now if self.half is None else self.half


@dataclass(frozen=True, eq=False)
class Step:
    """One step of AdamW: rates differ by run, the count of steps does not.

    All of it lies on the device, so that a recorded step can be played again.
    """

    scales: Float[Tensor, 2]
    """What the moving averages are multiplied by, so soon after the start."""
    rate: Float[Tensor, " runs"]
    decay: Float[Tensor, " runs"]
    improved: Bool[Tensor, " runs"]
    """Runs whose weights before this step are their best so far, to be kept."""


def scales(count: Float[Tensor, 1]) -> Float[Tensor, 2]:
    """1 / (1 - beta^count) for both moving averages."""
    return torch.cat([1 / (1 - beta**count) for beta in (BETA1, BETA2)]).float()
