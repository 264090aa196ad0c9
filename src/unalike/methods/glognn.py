"""GloGNN++: every node is a combination of all others, in closed form."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse
import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Graph
from unalike.errors import UserError
from unalike.methods.base import MessagePassingMethod, require_full_batch
from unalike.nn.linear import Dropout
from unalike.nn.sparse_linear import InputLinear

Hidden = Float[Tensor, "nodes classes"]


@dataclass(frozen=True, kw_only=True)
class GloGNN(MessagePassingMethod):
    """H = (1 − γ) Z H + γ H₀, where every row of Z weights all nodes of the graph.

    Z minimises |H − (1 − γ) Z H − γ H₀|² + α |Z|² + β |Z − Σₖ λₖ Pᵏ|², with
    P = D^-1 (A + I) and H₀ = relu(δ X W + (1 − δ) P V) U. Z is never written out; only
    matrices of classes x classes are inverted.
    """

    paper = "Li et al. 2022, https://arxiv.org/abs/2205.07308"
    suits = "nodes that are far apart are alike, on graphs that fit as a whole"
    capturable = False  # linalg.solve waits for the GPU

    hidden: int = 64
    """Width of the hidden layer in front of H₀."""
    layers: int = 2
    """Rounds of H."""
    dropout: float = 0.5
    """Fraction of hidden units dropped in training."""
    hops: int = 2
    """The highest power of P."""
    norm_weight: float = 0.0
    """α, the weight of |Z|²."""
    hops_weight: float = 1.0
    """β, the weight of the distance of Z from the powers of P."""
    gamma: float = 0.5
    """γ, the weight of H₀; at least 0 and below 1."""
    delta: float = 0.5
    """δ, the weight of the features; the edges have 1 − δ."""
    class_weights_learned: bool = True
    """Learn a weight for each class inside Z, as GloGNN++ does."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.gamma < 1:
            raise UserError(
                f"--gamma is {self.gamma}; at least 0 and below 1 is needed."
            )
        if not 0 <= self.delta <= 1:
            raise UserError(f"--delta is {self.delta}; it must be from 0 to 1.")
        if not self.norm_weight + self.hops_weight > 0:
            raise UserError("--norm-weight and --hops-weight are 0; one must be above.")

    def prepare(self, graph: Graph) -> Graph:
        """The graph with P instead of its adjacency."""
        return replace(graph, adjacency=mean_with_self(graph.adjacency))

    def build_module(self, graph: Graph) -> nn.Module:
        require_full_batch(self)
        return GloGNNModule(self, graph)


def mean_with_self(adjacency: Adjacency) -> Adjacency:
    """D^-1 (A + I), where nodes with a self-loop keep their own."""
    if adjacency.num_rows != adjacency.num_cols:
        return adjacency
    rows = adjacency.to_scipy().astype(np.float32)
    missing = (rows.diagonal() == 0).astype(np.float32)
    rows = scipy.sparse.csr_array(rows + scipy.sparse.diags_array(missing))
    sums = rows.sum(1)
    scale = np.divide(1, sums, out=np.zeros_like(sums), where=sums > 0)
    return Adjacency.from_scipy(scipy.sparse.diags_array(scale) @ rows)


class GloGNNModule(nn.Module):
    """Rounds of H = (1 − γ) Z H + γ H₀ in closed form."""

    def __init__(self, o: GloGNN, graph: Graph) -> None:
        super().__init__()
        shares = {"features": o.delta, "adjacency": 1 - o.delta}
        self.shares = [(source, share) for source, share in shares.items() if share]
        self.first = nn.ModuleList(
            InputLinear("features" if s == "features" else "adjacency", graph, o.hidden)
            for s, _ in self.shares
        )
        self.final = nn.Linear(o.hidden, graph.num_classes)
        self.dropout = Dropout(o.dropout)
        self.hops = nn.Parameter(torch.full((o.hops,), 1 / max(1, o.hops)))
        classes = graph.num_classes
        weights = torch.full((classes,), 1 / max(1, classes))
        self.class_weights = nn.Parameter(weights) if o.class_weights_learned else None
        self.layers, self.gamma = o.layers, o.gamma
        self.hops_weight = o.hops_weight
        self.total_weight = o.norm_weight + o.hops_weight

    def forward(self, batch: Graph) -> Hidden:
        u = torch.stack(
            [
                share * linear(getattr(batch, source))
                for linear, (source, share) in zip(self.first, self.shares, strict=True)
            ]
        ).sum(0)
        h0 = h = self.final(self.dropout(torch.relu(u)))
        for _ in range(self.layers):
            h = self.combine(batch.adjacency, h, h0)
        return h

    def combine(self, p: Adjacency, h: Hidden, h0: Hidden) -> Hidden:
        """(1 − γ) Z H + γ H₀ by products of classes x classes, in float64."""
        keep, s = 1 - self.gamma, self.total_weight
        exact = h.double()
        gram = exact.mT @ exact
        eye = torch.eye(gram.shape[0], dtype=gram.dtype, device=gram.device)
        inner = torch.linalg.solve(eye / keep**2 + gram / s, gram)
        q = keep / s * exact - keep / s**2 * exact @ inner
        if self.class_weights is not None:
            q = q * self.class_weights
        t = exact.mT @ q
        if self.class_weights is not None:
            t = self.class_weights[:, None] * t
        mixed = exact - self.gamma * h0.double()
        out = keep * mixed @ t + self.gamma * h0
        walked = q.to(h.dtype)
        for weight in self.hops:
            walked = p @ walked
            out = out + self.hops_weight * weight * walked
        return out.to(h.dtype)
