"""Jumping knowledge (max, sum, concat, LSTM attention; Xu et al. 2018)."""

from __future__ import annotations

import math
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.nn.init import uniform

Jump = Literal["max", "cat", "lstm", "sum", "last"]
Outputs = list[Float[Tensor, "nodes width"]]


class MaxJump(nn.Module):
    """The elementwise maximum over layers."""

    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        self.out_features = width

    def forward(self, outputs: Outputs) -> Float[Tensor, "nodes width"]:
        return torch.stack(outputs).amax(0)


class SumJump(MaxJump):
    """The sum over layers."""

    def forward(self, outputs: Outputs) -> Float[Tensor, "nodes width"]:
        return torch.stack(outputs).sum(0)


class LastJump(MaxJump):
    """The output of the last layer alone."""

    def forward(self, outputs: Outputs) -> Float[Tensor, "nodes width"]:
        return outputs[-1]


class ConcatJump(nn.Module):
    """The outputs of all layers, concatenated."""

    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        self.out_features = layers * width

    def forward(self, outputs: Outputs) -> Float[Tensor, "nodes columns"]:
        return torch.cat(outputs, 1)


class LSTMJump(nn.Module):
    """A mean of the layers, weighted by a bidirectional LSTM."""

    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        hidden = max(1, layers * width // 2)
        self.out_features = width
        self.forward_lstm = LSTM(width, hidden)
        self.backward_lstm = LSTM(width, hidden)
        self.score = nn.Linear(2 * hidden, 1, bias=False)

    def forward(self, outputs: Outputs) -> Float[Tensor, "nodes width"]:
        forward = self.forward_lstm(outputs)
        backward = self.backward_lstm(outputs[::-1])[::-1]
        states = [torch.cat(pair, 1) for pair in zip(forward, backward, strict=True)]
        weights = torch.cat([self.score(state) for state in states], 1).softmax(1)
        return torch.einsum("lnw,nl->nw", torch.stack(outputs), weights)


class LSTM(nn.Module):
    """LSTM (Hochreiter and Schmidhuber 1997) that vmap can stack, unlike `nn.LSTM`."""

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
            input_, forget, candidate, output = gates.chunk(4, 1)
            cell = forget.sigmoid() * cell + input_.sigmoid() * candidate.tanh()
            hidden = output.sigmoid() * torch.tanh(cell)
            states.append(hidden)
        return states


JUMPING_KNOWLEDGE: dict[Jump, type[MaxJump | ConcatJump | LSTMJump]] = {
    "max": MaxJump,
    "cat": ConcatJump,
    "lstm": LSTMJump,
    "sum": SumJump,
    "last": LastJump,
}
