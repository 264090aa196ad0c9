"""Dir-GNN: convolutions along and against the edges of a directed graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from unalike.data.graph import Graph
from unalike.methods.base import MessagePassingMethod
from unalike.nn.jumping_knowledge import JUMPING_KNOWLEDGE, Jump
from unalike.nn.linear import Dropout
from unalike.nn.normalized_adjacency import DirectedNorm
from unalike.nn.sparse_linear import InputLinear

Activation = Literal["relu", "abs", "none"]
ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "abs": torch.abs,
    "none": lambda x: x,
}

Channel = Callable[[DirectedNorm, Tensor], Tensor]
CHANNELS: dict[str, tuple[Channel, Channel]] = {
    "alpha": (lambda a, x: a.out(x), lambda a, x: a.into(x)),
    "cocitation": (lambda a, x: a.out(a.into(x)), lambda a, x: a.into(a.out(x))),
    "two_hop": (lambda a, x: a.out(a.out(x)), lambda a, x: a.into(a.into(x))),
}
"""Pairs of operators by the option that weighs them: w the first, 1 - w the second."""


@dataclass(frozen=True, kw_only=True)
class DirGNN(MessagePassingMethod):
    """x = act(α P x W + (1 − α) Q x V + b), P = D_out^-e A D_in^-e and Q = Pᵀ.

    A jump over all layers and a linear layer follow. FaberNet is `--exponent 0.25`, on
    chameleon and squirrel with `--complex-weights --activation abs`; ScaleNet has
    `--cocitation` and `--two-hop`.
    """

    paper = "Rossi et al. 2023, https://arxiv.org/abs/2305.10498"
    suits = (
        "edges are directed, and those that leave a node differ from those that enter"
    )

    hidden: int = 64
    """Width of every hidden layer."""
    layers: int = 2
    """Graph convolutions."""
    dropout: float = 0.0
    """Fraction of hidden units dropped in training."""
    alpha: float = 0.5
    """Weight of the edges that leave a node; those that enter it have 1 − α."""
    cocitation: float = -1.0
    """Weight of P Q x, nodes with common targets; Q P x has the rest; below 0: off."""
    two_hop: float = -1.0
    """Weight of P P x, two steps along edges; Q Q x has the rest; below 0: off."""
    exponent: float = 0.5
    """Exponent e of the degrees; FaberNet has 1/4."""
    own: bool = False
    """Add x W of the node itself."""
    complex_weights: bool = False
    """Two streams instead of channels: R = Q (R W − I V) and I = P R V + Q I W."""
    activation: Activation = "relu"
    """Activation of every layer."""
    normalize: bool = False
    """Divide every row by its L2 norm behind the activation and dropout."""
    jump: Jump = "max"
    """Combine the outputs of all layers: maximum, concatenation, LSTM, sum or last."""

    def build_module(self, graph: Graph) -> nn.Module:
        return DirGNNModule(self, graph)


class DirGNNModule(nn.Module):
    """jump(x_1, …, x_L) U + c with x_l = normalize(dropout(act(Σ w M x W + b)))."""

    def __init__(self, o: DirGNN, graph: Graph) -> None:
        super().__init__()
        self.combine = ComplexSum() if o.complex_weights else ChannelSum(o)
        width = o.hidden * self.combine.streams
        parts = o.hidden * self.combine.parts
        self.first = InputLinear("features", graph, parts, bias=False)
        self.linears = nn.ModuleList(
            nn.Linear(o.hidden, parts, bias=False) for _ in range(o.layers - 1)
        )
        self.biases = nn.ParameterList(torch.zeros(width) for _ in range(o.layers))
        self.dropout = Dropout(o.dropout)
        self.jump = JUMPING_KNOWLEDGE[o.jump](o.layers, width)
        self.final = nn.Linear(self.jump.out_features, graph.num_classes)
        self.exponent, self.normalize = o.exponent, o.normalize
        self.activation = ACTIVATIONS[o.activation]

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        a = DirectedNorm.of(batch.adjacency, self.exponent)
        streams = self.combine.first(a, self.first(batch.features))
        outputs = [self.activate(streams, self.biases[0])]
        # A slice of a ParameterList would copy its tensors, without their gradients.
        for linear, bias in zip(self.linears, [*self.biases][1:], strict=True):
            inputs = outputs[-1].chunk(self.combine.streams, 1)
            streams = self.combine(a, [linear(x) for x in inputs])
            outputs.append(self.activate(streams, bias))
        return self.final(self.jump(outputs))

    def activate(
        self, streams: list[Tensor], bias: Float[Tensor, " width"]
    ) -> Float[Tensor, "nodes width"]:
        """Bias, activation, dropout and, per stream, rows of length one."""
        biased = torch.cat(streams, 1) + bias.to(streams[0].dtype)
        x = self.dropout(self.activation(biased))
        if not self.normalize:
            return x
        parts = x.chunk(len(streams), 1)
        return torch.cat([F.normalize(part, dim=1) for part in parts], 1)


class ChannelSum(nn.Module):
    """Σ w M x W over the channels that have a weight."""

    streams = 1

    def __init__(self, o: DirGNN) -> None:
        super().__init__()
        self.channels: list[tuple[float, Channel]] = [
            (weight, channel)
            for option, pair in CHANNELS.items()
            if getattr(o, option) >= 0
            for weight, channel in zip(
                (getattr(o, option), 1 - getattr(o, option)), pair, strict=True
            )
            if weight
        ]
        if o.own:
            self.channels.append((1.0, lambda a, x: x))
        self.parts = len(self.channels)

    def first(self, a: DirectedNorm, x: Float[Tensor, "nodes parts"]) -> list[Tensor]:
        """The sum of the first layer, whose products are joined."""
        return self(a, [x])

    def forward(
        self, a: DirectedNorm, inputs: list[Float[Tensor, "nodes parts"]]
    ) -> list[Tensor]:
        parts = inputs[0].chunk(self.parts, 1)
        terms = [
            weight * channel(a, part)
            for (weight, channel), part in zip(self.channels, parts, strict=True)
        ]
        return [torch.stack(terms).sum(0)]


class ComplexSum(nn.Module):
    """R = Q (R W − I V) and I = P R V + Q I W (FaberNet, Koke and Cremers 2024)."""

    streams = parts = 2

    def first(self, a: DirectedNorm, x: Float[Tensor, "nodes parts"]) -> list[Tensor]:
        """The two streams of the first layer, where I is 0."""
        real_w, real_v = x.chunk(2, 1)
        return [a.into(real_w), a.out(real_v)]

    def forward(
        self, a: DirectedNorm, inputs: list[Float[Tensor, "nodes parts"]]
    ) -> list[Tensor]:
        (real_w, real_v), (imag_w, imag_v) = (x.chunk(2, 1) for x in inputs)
        return [a.into(real_w - imag_v), a.out(real_v) + a.into(imag_w)]
