"""Dropout whose rate is a tensor, so that runs of a stack may differ in it."""

import torch
from jaxtyping import Float
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
        if not self.training:
            return x
        kept = torch.rand_like(x) >= self.rate
        return x * kept / (1 - self.rate)
