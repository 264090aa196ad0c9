"""LSTM in plain operations, which unlike torch's own can be stacked."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.training.network import uniform


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
