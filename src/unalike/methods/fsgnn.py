"""FSGNN: softmax-weighted, normalised linear maps of propagated features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import Function
from torch.nn import functional as F

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Graph
from unalike.datasets.transforms import normalize_rows
from unalike.methods.base import PropagatedFeaturesMethod
from unalike.nn.linear import Dropout
from unalike.nn.normalized_adjacency import SELF_LOOP_WEIGHTS, SelfLoops
from unalike.nn.sparse_linear import DenseLinear
from unalike.options import later_option

Operators = Literal["both", "loops", "no-loops"]
OPERATORS: dict[Operators, tuple[SelfLoops, ...]] = {
    "both": ("kept", "all"),
    "loops": ("all",),
    "no-loops": ("kept",),
}
"""Self-loops of the adjacencies whose powers are used."""


@dataclass(frozen=True, kw_only=True)
class FSGNN(PropagatedFeaturesMethod):
    """relu([…; softmax(a)_m normalize(X_m W_m + b_m); …]) V + c, X_m in X, Sᵏ X, S̃ᵏ X.

    S is D^-1/2 A D^-1/2 and S̃ the same for A + I, where D has the out-degrees on both
    sides, and 1 where there are none.
    """

    paper = "Maurya et al. 2021, https://arxiv.org/abs/2105.07634"
    suits = "features are strong and each distance should have its own weight"

    hidden: int = 64
    """Width of the linear map of each matrix."""
    hops: int = 3
    """The highest power K of the adjacencies; the paper tries 3, 8, 16 and 32."""
    dropout: float = 0.5
    """Fraction of hidden units dropped in training."""
    operators: Operators = "both"
    """Powers of the adjacency with self-loops, as it is, or both."""
    hop_norm: bool = True
    """Divide every row of a linear map by its L2 norm."""
    normalize_features: bool = True
    """Divide the features of each node by their sum first."""
    scalar_lr: float = later_option(1.0)
    """Learning rate of a, as a multiple of --lr."""
    scalar_decay: float = later_option(0.0)
    """L2 penalty of a in its gradient, besides --weight-decay."""

    @property
    def num_propagated(self) -> int:
        return 1 + self.hops * len(OPERATORS[self.operators])

    def propagate(
        self, graph: Graph, x: Float[Tensor, "nodes features"]
    ) -> list[Float[Tensor, "nodes features"]]:
        if self.normalize_features:
            dense = normalize_rows(x)
            assert isinstance(dense, Tensor)
            x = dense
        matrices = [x]
        for loops in OPERATORS[self.operators]:
            matrices += out_powers(graph.adjacency, loops, x, self.hops)
        return matrices

    def build_module(self, graph: Graph) -> nn.Module:
        return FSGNNModule(self, graph)


def out_powers(
    adjacency: Adjacency,
    loops: SelfLoops,
    x: Float[Tensor, "nodes features"],
    hops: int,
) -> list[Float[Tensor, "nodes features"]]:
    """Sᵏ x for k from 1 to K, by the out-degrees; a degree of 0 counts as 1."""
    added = SELF_LOOP_WEIGHTS[loops](adjacency.diagonal)[:, None]
    degrees = adjacency @ torch.ones(adjacency.num_cols, 1) + added
    scale = torch.where(degrees > 0, degrees, 1.0).rsqrt()
    powers = [x]
    for _ in range(hops):
        scaled = scale * powers[-1]
        powers.append(scale * (adjacency @ scaled + added * scaled))
    return powers[1:]


class FSGNNModule(nn.Module):
    """relu([…; softmax(a)_m normalize(X_m W_m + b_m); …]) V + c."""

    def __init__(self, o: FSGNN, graph: Graph) -> None:
        super().__init__()
        count = o.num_propagated
        self.maps = HopLinears(graph, count, o.hidden)
        self.a = ScaledParameter(
            torch.ones(count), lr=o.scalar_lr, decay=o.scalar_decay
        )
        self.dropout = Dropout(o.dropout)
        self.final = nn.Linear(count * o.hidden, graph.num_classes)
        self.hop_norm = o.hop_norm

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        maps = self.maps(batch.features)
        if self.hop_norm:
            maps = [F.normalize(x, dim=1) for x in maps]
        shares = self.a().softmax(0).to(maps[0].dtype)
        parts = [share * x for share, x in zip(shares, maps, strict=True)]
        return self.final(self.dropout(torch.relu(torch.cat(parts, 1))))


class HopLinears(nn.Module):
    """X_m W_m + b_m of each of the matrices that lie side by side."""

    def __init__(self, graph: Graph, count: int, width: int) -> None:
        super().__init__()
        num_features = graph.num_features // count
        self.linears = nn.ModuleList(
            DenseLinear(num_features, width) for _ in range(count)
        )

    def forward(
        self, features: Float[Tensor, "nodes columns"]
    ) -> list[Float[Tensor, "nodes width"]]:
        blocks = features.to_dense().unflatten(1, (len(self.linears), -1)).unbind(1)
        return [linear(x) for linear, x in zip(self.linears, blocks, strict=True)]


class ScaledParameter(nn.Module):
    """A parameter that learns `lr` times as fast as others, with an L2 penalty.

    The steps of Adam do not depend on the scale of a gradient, so that `lr` times a
    parameter that starts at 1 / `lr` of the value moves `lr` times as far.
    """

    def __init__(
        self, value: Float[Tensor, "*shape"], *, lr: float = 1.0, decay: float = 0.0
    ) -> None:
        super().__init__()
        self.scaled = nn.Parameter(value / lr)
        self.lr, self.decay = lr, decay

    def forward(self) -> Float[Tensor, "*shape"]:
        value: Tensor = self.lr * self.scaled
        return L2Penalty.apply(value, self.decay) if self.decay else value


class L2Penalty(Function):
    """x, whose gradient has decay · x added."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Float[Tensor, "*shape"], decay: float) -> Float[Tensor, "*shape"]:
        return x.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
        x, ctx.decay = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(
        ctx: Any, grad_out: Float[Tensor, "*shape"]
    ) -> tuple[Float[Tensor, "*shape"], None]:
        (x,) = ctx.saved_tensors
        return grad_out + ctx.decay * x, None
