"""FSGNN: softmax-weighted, normalised linear maps of propagated features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from unalike.data.graph import Graph
from unalike.datasets.transforms import normalize_rows
from unalike.methods.base import PropagatedFeaturesMethod
from unalike.nn.linear import Dropout
from unalike.nn.normalized_adjacency import GCNNorm, SelfLoops
from unalike.nn.sparse_linear import DenseLinear

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

    S is A and S̃ is A + I, both divided by the root of the out-degrees on each side.
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
            # Of the transpose, so that degrees and sums are those of outgoing edges.
            s = GCNNorm.of(graph.adjacency.T, self_loops=loops)
            matrices += [s.power(hop, x) for hop in range(1, self.hops + 1)]
        return matrices

    def build_module(self, graph: Graph) -> nn.Module:
        return FSGNNModule(self, graph)


class FSGNNModule(nn.Module):
    """relu([…; softmax(a)_m normalize(X_m W_m + b_m); …]) V + c."""

    def __init__(self, o: FSGNN, graph: Graph) -> None:
        super().__init__()
        count = o.num_propagated
        self.num_features = graph.num_features // count
        self.linears = nn.ModuleList(
            DenseLinear(self.num_features, o.hidden) for _ in range(count)
        )
        self.weights = nn.Parameter(torch.ones(count))
        self.dropout = Dropout(o.dropout)
        self.final = nn.Linear(count * o.hidden, graph.num_classes)
        self.hop_norm = o.hop_norm

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        shares, features = self.weights.softmax(0), batch.features.to_dense()
        parts = []
        for m, linear in enumerate(self.linears):
            first = m * self.num_features
            x = linear(features[:, first : first + self.num_features])
            x = F.normalize(x, dim=1) if self.hop_norm else x
            parts.append(shares[m].to(x.dtype) * x)
        return self.final(self.dropout(torch.relu(torch.cat(parts, 1))))
