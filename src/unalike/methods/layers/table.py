"""Table: a first layer's weight, kept as one row per input; and its offset."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn


def table(inputs: int, width: int, *, fan_in: int | None = None) -> nn.Parameter:
    """A weight drawn like that of `nn.Linear`: uniform within 1 / sqrt(inputs)."""
    return nn.Parameter(_draw(fan_in or inputs, inputs, width))


class Offset(nn.Module):
    """The bias of a table's product."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(_draw(inputs, width))

    def forward(self, x: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows width"]:
        return x + self.bias


def _draw(fan_in: int, *shape: int) -> Float[Tensor, "*shape"]:
    bound = 1 / math.sqrt(max(1, fan_in))
    return torch.empty(shape).uniform_(-bound, bound)
