"""Polynormer: local attention with products, then linear attention of all nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.data.graph import Graph
from unalike.methods.base import MessagePassingMethod
from unalike.nn.attention import Attention
from unalike.nn.linear import Dropout
from unalike.nn.residual_layers import glorot_linear
from unalike.nn.sparse_linear import InputLinear

Rows = Float[Tensor, "nodes columns"]


@dataclass(frozen=True, kw_only=True)
class Polynormer(MessagePassingMethod):
    """x = (1 − β) LN(h a) + β a, h = relu(x W), a = relu(GAT(x) + x V), layer by layer.

    Linear attention of all nodes follows on the sum of all layers.
    """

    paper = "Deng et al. 2024, https://arxiv.org/abs/2403.01232"
    suits = (
        "features are strong and far nodes matter; attention over all nodes is linear"
    )
    uses_edge_weights = False

    hidden: int = 16
    """Width of each head."""
    heads: int = 4
    """Heads of each layer."""
    layers: int = 3
    """Layers of local attention."""
    global_layers: int = 1
    """Layers of attention of all nodes."""
    dropout: float = 0.5
    """Fraction of hidden units dropped in training."""
    global_dropout: float = 0.0
    """The same in the layers of global attention."""
    input_dropout: float = 0.0
    """Fraction of dense features dropped in training."""
    beta: float = -1.0
    """Initial β of all layers, which is learned; below 0: a sigmoid that is learned."""
    local_epochs: int = 0
    """Steps of a linear layer on local attention, before global attention begins; an
    epoch is one step, unless it has several batches."""

    def build_module(self, graph: Graph) -> nn.Module:
        return PolynormerModule(self, graph)


class PolynormerModule(nn.Module):
    """Local layers, and the linear or the global layers behind their sum."""

    steps: Tensor

    def __init__(self, o: Polynormer, graph: Graph) -> None:
        super().__init__()
        width = o.heads * o.hidden
        dropout = o.input_dropout or None
        self.first = InputLinear("features", graph, width, dropout=dropout)
        self.dropout = Dropout(o.dropout)
        self.local = nn.ModuleList(LocalLayer(o, width) for _ in range(o.layers))
        self.local_epochs = o.local_epochs
        # Without local epochs the layer would never be trained.
        self.local_final = (
            nn.Linear(width, graph.num_classes) if o.local_epochs else None
        )
        self.norm = nn.LayerNorm(width)
        self.attention = nn.ModuleList(
            GlobalLayer(o, width) for _ in range(o.global_layers)
        )
        self.out = nn.Linear(width, width)
        self.global_dropout = Dropout(o.global_dropout)
        self.final = nn.Linear(width, graph.num_classes)
        # Counted with the weights, so that the best weights keep their phase.
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        if self.training:
            self.steps.add_(1)
        x = self.dropout(self.first(batch.features))
        outputs = []
        for layer in self.local:
            x = layer(batch.adjacency, x)
            outputs.append(x)
        total = torch.stack(outputs).sum(0)
        g = self.norm(total)
        for layer in self.attention:
            g = self.global_dropout(torch.relu(self.out(layer(g))))
        logits = self.final(g)
        if self.local_final is None:
            return logits
        is_local = self.steps <= self.local_epochs
        return torch.where(is_local, self.local_final(total), logits)


class Beta(nn.Module):
    """β that starts at a value; a sigmoid that starts at 1/2 where that is below 0."""

    def __init__(self, start: float, width: int) -> None:
        super().__init__()
        self.is_sigmoid = start < 0
        self.weight = nn.Parameter(torch.full((width,), max(start, 0.0)))

    def forward(self) -> Float[Tensor, " columns"]:
        return self.weight.sigmoid() if self.is_sigmoid else self.weight


class LocalLayer(nn.Module):
    """(1 − β) LN(h a) + β a with h = relu(x W) and a = dropout(relu(GAT(x) + x V))."""

    def __init__(self, o: Polynormer, width: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, width)
        self.linear = glorot_linear(width, width)
        self.attention = Attention(o.heads, width)
        self.skip = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.dropout = Dropout(o.dropout)
        self.beta = Beta(o.beta, width)

    def forward(self, adjacency: Any, x: Rows) -> Rows:
        h = torch.relu(self.gate(x))
        local = self.attention(adjacency, self.linear(x)) + self.skip(x)
        a = self.dropout(torch.relu(local))
        beta = self.beta().to(a.dtype)
        return (1 - beta) * self.norm(h * a) + beta * a


class GlobalLayer(nn.Module):
    """LN(k (kᵀ v) / (k Σ k)) (h + β) of all nodes, k = σ(x K), at linear cost."""

    def __init__(self, o: Polynormer, width: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.heads = o.heads
        self.beta = Beta(o.beta, width)

    def forward(self, x: Rows) -> Rows:
        key, value = (
            part.unflatten(1, (-1, self.heads))
            for part in (self.key(x).sigmoid(), self.value(x))
        )
        products = torch.einsum("ndh,nmh->dmh", key, value)
        sums = torch.einsum("ndh,dh->nh", key, key.sum(0))
        u = torch.einsum("ndh,dmh->nmh", key, products) / sums[:, None]
        return self.norm(u.flatten(1)) * (self.gate(x) + self.beta().to(x.dtype))
