"""LSTM in plain operations, which vmap can stack unlike `nn.LSTM`."""

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
        self.weight_ih = uniform(bound, inputs, 4 * hidden)
        self.weight_hh = uniform(bound, hidden, 4 * hidden)
        self.bias = uniform(bound, 4 * hidden)

    def forward(
        self, steps: list[Float[Tensor, "nodes inputs"]]
    ) -> list[Float[Tensor, "nodes hidden"]]:
        """The hidden state after each step."""
        hidden = cell = steps[0].new_zeros(len(steps[0]), len(self.weight_hh))
        states = []
        for x in steps:
            gates = x @ self.weight_ih + hidden @ self.weight_hh + self.bias
            enter, forget, candidate, output = gates.chunk(4, 1)
            cell = forget.sigmoid() * cell + enter.sigmoid() * candidate.tanh()
            hidden = output.sigmoid() * torch.tanh(cell)
            states.append(hidden)
        return states
