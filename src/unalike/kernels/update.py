"""Update: what one AdamW step needs to know of a stack of weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from unalike.spacious import room_like

Kind = TypeVar("Kind", bound="Weights")

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


@dataclass(frozen=True, eq=False, kw_only=True)
class Held:
    """Weights of a stack of runs, and the best so far."""

    now: Float[Tensor, "rows runs width"]
    best: Float[Tensor, "rows runs width"]
    """The weights of each run's best epoch."""
    half: Float[Tensor, "rows runs width"] | None = None
    """A bfloat16 copy to gather from, where it is asked for."""

    @property
    def to_gather(self) -> Float[Tensor, "rows runs width"]:
        """What a sparse product reads."""
        return self.now if self.half is None else self.half


@dataclass(frozen=True, eq=False, kw_only=True)
class Weights(Held):
    """Weights with the moments of AdamW."""

    first: Float[Tensor, "rows runs width"]
    """Moving average of the gradient."""
    second: Float[Tensor, "rows runs width"]
    """Moving average of its square."""

    @classmethod
    def fresh(
        cls: type[Kind], now: Float[Tensor, "rows runs width"], *, half: bool
    ) -> Kind:
        """Weights before the first step."""
        return cls(
            now=now,
            best=room_like(now).copy_(now),
            half=now.to(torch.bfloat16) if half else None,
            first=room_like(now).zero_(),
            second=room_like(now).zero_(),
        )


@dataclass(frozen=True, eq=False)
class Step:
    """One step of AdamW: rates differ by run, the count of steps does not.

    All of it lies on the device, so that a recorded step can be played again.
    """

    count: Shaped[Tensor, 1]
    """Steps taken, this one included."""
    rate: Float[Tensor, " runs"]
    decay: Float[Tensor, " runs"]
    improved: Bool[Tensor, " runs"]
    """Runs whose weights before this step are their best so far, to be kept."""

    @cached_property
    def scales(self) -> Float[Tensor, 2]:
        """1 / (1 - beta^count): what makes up for moving averages that begin at 0."""
        count = self.count.double()
        return torch.cat([1 / (1 - beta**count) for beta in (BETA1, BETA2)]).float()
