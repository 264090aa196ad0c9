"""Jumping knowledge (max, concat, LSTM attention) and a vmap-able LSTM."""

from __future__ import annotations

import math
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.nn.module import uniform

# LSTM in plain operations, which unlike torch's own can be stacked.


class LSTM(nn.Module):
    """Long short-term memory (Hochreiter and Schmidhuber 1997) in one direction."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(hidden)
        self.inward = uniform(bound, inputs, 4 * hidden)
        self.onward = uniform(bound, hidden, 4 * hidden)
        self.offset = uniform(bound, 4 * hidden)

    def forward(
        self, steps: list[Float[Tensor, "nodes inputs"]]
    ) -> list[Float[Tensor, "nodes hidden"]]:
        """What is told after each step."""
        told = memory = steps[0].new_zeros(len(steps[0]), len(self.onward))
        all_told = []
        for x in steps:
            gates = x @ self.inward + told @ self.onward + self.offset
            enter, keep, change, tell = gates.chunk(4, 1)
            kept = keep.sigmoid() * memory
            memory = kept + enter.sigmoid() * change.tanh()
            told = tell.sigmoid() * torch.tanh(memory)
            all_told.append(told)
        return all_told


# Jumping knowledge: how the outputs of all layers are joined (Xu et al. 2018).


Outputs = list[Float[Tensor, "nodes width"]]


class MaxJump(nn.Module):
    """The largest number of each column."""

    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, outputs: Outputs) -> Float[Tensor, "nodes width"]:
        return torch.stack(outputs).amax(0)


class ConcatJump(nn.Module):
    """All columns of all layers."""

    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        self.width = layers * width

    def forward(self, outputs: Outputs) -> Float[Tensor, "nodes columns"]:
        return torch.cat(outputs, 1)


class LSTMJump(nn.Module):
    """A mean whose weights two LSTMs choose, which read the layers there and back."""

    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        hidden = max(1, layers * width // 2)
        self.width = width
        self.there, self.back = LSTM(width, hidden), LSTM(width, hidden)
        self.score = nn.Linear(2 * hidden, 1, bias=False)

    def forward(self, outputs: Outputs) -> Float[Tensor, "nodes width"]:
        there, back = self.there(outputs), self.back(outputs[::-1])[::-1]
        read = [torch.cat(pair, 1) for pair in zip(there, back, strict=True)]
        weights = torch.cat([self.score(one) for one in read], 1).softmax(1)
        return torch.einsum("lnw,nl->nw", torch.stack(outputs), weights)


Jump = Literal["max", "cat", "lstm"]

JUMPING_KNOWLEDGE: dict[Jump, type[MaxJump | ConcatJump | LSTMJump]] = {
    "max": MaxJump,
    "cat": ConcatJump,
    "lstm": LSTMJump,
}
