"""Dropout whose rate is a tensor, so that runs of a stack may differ in it."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Dropout(nn.Module):
    """Zero a share of the numbers in training and scale up the rest."""

    rate: Float[Tensor, ""]

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.register_buffer("rate", torch.tensor(rate))

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        if not self.training:
            return x
        kept = torch.rand_like(x) >= self.rate
        return x * kept / (1 - self.rate)
