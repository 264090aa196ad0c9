"""Jumping knowledge: how the outputs of all layers are joined (Xu et al. 2018)."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.methods.layers.lstm import LSTM

Outputs = list[Float[Tensor, "nodes width"]]


class Largest(nn.Module):
    """The largest number of each column."""

    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, outputs: Outputs) -> Float[Tensor, "nodes width"]:
        return torch.stack(outputs).amax(0)


class SideBySide(nn.Module):
    """All columns of all layers."""

    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        self.width = layers * width

    def forward(self, outputs: Outputs) -> Float[Tensor, "nodes columns"]:
        return torch.cat(outputs, 1)


class Weighed(nn.Module):
    """A mean of the layers, weighted by a bidirectional LSTM."""

    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        hidden = max(1, layers * width // 2)
        self.width = width
        self.forward_lstm = LSTM(width, hidden)
        self.backward_lstm = LSTM(width, hidden)
        self.score = nn.Linear(2 * hidden, 1, bias=False)

    def forward(self, outputs: Outputs) -> Float[Tensor, "nodes width"]:
        there = self.forward_lstm(outputs)
        back = self.backward_lstm(outputs[::-1])[::-1]
        read = [torch.cat(pair, 1) for pair in zip(there, back, strict=True)]
        weights = torch.cat([self.score(one) for one in read], 1).softmax(1)
        return torch.einsum("lnw,nl->nw", torch.stack(outputs), weights)


Jump = Literal["max", "cat", "lstm"]

JUMPS: dict[Jump, type[Largest | SideBySide | Weighed]] = {
    "max": Largest,
    "cat": SideBySide,
    "lstm": Weighed,
}
