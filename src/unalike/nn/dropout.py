"""Dropout whose rate is a tensor, so that runs of a stack may differ in it."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from unalike.errors import UserError


class Dropout(nn.Module):
    """`nn.Dropout` with its rate p as a buffer."""

    p: Float[Tensor, ""]

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise UserError(f"The dropout is {p}; it is at least 0 and below 1.")
        self.register_buffer("p", torch.tensor(p))

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return apply_dropout(x, self.sample_mask(x), self.p) if self.training else x

    def sample_mask(self, x: Float[Tensor, "*shape"]) -> Bool[Tensor, "*shape"]:
        """Decide which numbers are kept."""
        return torch.rand_like(x) >= self.p


def apply_dropout(
    x: Float[Tensor, "*shape"], kept: Bool[Tensor, "*shape"], rate: Float[Tensor, ""]
) -> Float[Tensor, "*shape"]:
    """The numbers that are kept, scaled up for those that are not."""
    return x * kept / (1 - rate)
