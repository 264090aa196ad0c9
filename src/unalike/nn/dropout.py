"""Dropout whose rate is a tensor, so that runs of a stack may differ in it."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from unalike.errors import UserError


class Dropout(nn.Module):
    """Zero a share of the numbers in training and scale up the rest."""

    rate: Float[Tensor, ""]

    def __init__(self, rate: float) -> None:
        super().__init__()
        if not 0 <= rate < 1:
            raise UserError(f"The dropout is {rate}; it is at least 0 and below 1.")
        self.register_buffer("rate", torch.tensor(rate))

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return apply_dropout(x, self.draw(x), self.rate) if self.training else x

    def draw(self, x: Float[Tensor, "*shape"]) -> Bool[Tensor, "*shape"]:
        """Decide which numbers are kept."""
        return torch.rand_like(x) >= self.rate


def apply_dropout(
    x: Float[Tensor, "*shape"], kept: Bool[Tensor, "*shape"], rate: Float[Tensor, ""]
) -> Float[Tensor, "*shape"]:
    """The numbers that are kept, scaled up for those that are not."""
    return x * kept / (1 - rate)
