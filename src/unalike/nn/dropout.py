"""Dropout whose probability is a tensor, so that runs of a stack may differ in it."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from unalike.errors import UserError


class Dropout(nn.Module):
    """`nn.Dropout` with its probability p as a buffer."""

    p: Float[Tensor, ""]

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise UserError(f"The dropout is {p}; it is at least 0 and below 1.")
        self.register_buffer("p", torch.tensor(p))

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return apply_dropout(x, self.sample_mask(x), self.p) if self.training else x

    def sample_mask(self, x: Float[Tensor, "*shape"]) -> Bool[Tensor, "*shape"]:
        """Sample which values remain."""
        return torch.rand_like(x) >= self.p


def apply_dropout(
    x: Float[Tensor, "*shape"], mask: Bool[Tensor, "*shape"], p: Float[Tensor, ""]
) -> Float[Tensor, "*shape"]:
    """x * mask / (1 - p)."""
    return x * mask / (1 - p)
