"""Polynomial filters of the features in five bases, computed once, then an MLP."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.data.graph import Graph
from unalike.methods.base import PropagatedFeaturesMethod
from unalike.methods.gpr_gnn import ppr_coefficients
from unalike.nn.init import linear_parameters
from unalike.nn.mlp import MLP, layer_sizes
from unalike.nn.normalized_adjacency import GCNNorm, SelfLoops

Matrix = Float[Tensor, "nodes features"]
Basis = Literal["monomial", "bernstein", "chebyshev", "jacobi", "optimal"]

MIN_NORM = 1e-8
"""Columns of the optimal basis are not divided by less."""


@dataclass(frozen=True, kw_only=True)
class Poly(PropagatedFeaturesMethod):
    """MLP(Σₖ θₖ pₖ(S) X), pₖ a basis of polynomials and S = D^-1/2 A D^-1/2.

    pₖ(S) X is computed once for the undirected graph, so that rows can be batched.
    """

    paper = "He et al. 2022, https://arxiv.org/abs/2202.03580"
    suits = (
        "the graph is large and a filter of the features is enough: edges are used once"
    )

    basis: Basis = "chebyshev"
    """monomial (GPR-GNN), bernstein (BernNet), chebyshev (ChebNetII), jacobi
    (JacobiConv) or optimal (OptBasisGNN, one coefficient for each feature)."""
    hops: int = 10
    """The degree K of the polynomial."""
    jacobi_a: float = 1.0
    """a of the Jacobi polynomials."""
    jacobi_b: float = 1.0
    """b of the Jacobi polynomials."""
    loops: SelfLoops = "none"
    """Self-loops of the graph; GPR-GNN adds one to every node."""
    hidden: int = 64
    """Width of every hidden layer of the MLP."""
    layers: int = 2
    """Linear layers of the MLP."""
    dropout: float = 0.5
    """Fraction of hidden units dropped in training."""

    @property
    def num_propagated(self) -> int:
        return self.hops + 1

    def propagate(self, graph: Graph, x: Matrix) -> list[Matrix]:
        adjacency = graph.to_undirected().adjacency
        return BASES[self.basis](GCNNorm.of(adjacency, self_loops=self.loops), x, self)

    def build_module(self, graph: Graph) -> nn.Module:
        return PolyModule(self, graph)


class PolyModule(nn.Module):
    """MLP(Σₖ θₖ pₖ(S) X)."""

    to_coefficients: Tensor

    def __init__(self, o: Poly, graph: Graph) -> None:
        super().__init__()
        self.count, self.basis = o.num_propagated, o.basis
        features = graph.num_features // self.count
        columns = features if o.basis == "optimal" else 1
        self.theta = nn.Parameter(start(o)[:, None].repeat(1, columns))
        sizes = layer_sizes(features, o.hidden, graph.num_classes, o.layers)
        # A DenseLinear would warn under vmap.
        self.weight, bias = linear_parameters(*sizes[:2])
        assert bias is not None
        self.bias = bias
        self.mlp = MLP(nn.Identity(), sizes[1:], o.dropout)
        matrix = chebyshev_interpolation(o.hops)
        self.register_buffer("to_coefficients", matrix, persistent=False)

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        bases = batch.features.to_dense().unflatten(1, (self.count, -1))
        coefficients = self.coefficients().to(bases.dtype)
        if coefficients.shape[1] == 1:
            x = torch.einsum("nkf,k->nf", bases, coefficients[:, 0])
        else:
            x = (bases * coefficients).sum(1)
        return self.mlp(x @ self.weight + self.bias)

    def coefficients(self) -> Float[Tensor, "powers columns"]:
        """θ: not negative for Bernstein, by values at the nodes for Chebyshev."""
        if self.basis == "bernstein":
            return torch.relu(self.theta)
        if self.basis == "chebyshev":
            return self.to_coefficients @ self.theta
        return self.theta


def start(o: Poly) -> Float[Tensor, " powers"]:
    """Initial θ: PageRank for monomials, all-pass for values, else X itself."""
    if o.basis == "monomial":
        return ppr_coefficients(0.1, o.hops)
    if o.basis in ("bernstein", "chebyshev"):
        return torch.ones(o.hops + 1)
    return torch.eye(1, o.hops + 1)[0]


def chebyshev_interpolation(hops: int) -> Float[Tensor, "powers powers"]:
    """The matrix from values at the Chebyshev nodes to coefficients of Tₖ."""
    size = hops + 1
    angles = (torch.arange(size, device="cpu") + 0.5) * math.pi / size
    matrix = 2 / size * torch.cos(torch.arange(size, device="cpu")[:, None] * angles)
    matrix[0] /= 2
    return matrix


def monomial(s: GCNNorm, x: Matrix, o: Poly) -> list[Matrix]:
    """Sᵏ x."""
    matrices = [x]
    for _ in range(o.hops):
        matrices.append(s @ matrices[-1])
    return matrices


def bernstein(s: GCNNorm, x: Matrix, o: Poly) -> list[Matrix]:
    """C(K, k) / 2ᴷ (1 + S)^(K-k) (1 − S)ᵏ x."""
    matrices = []
    for k in range(o.hops + 1):
        low = x
        for _ in range(o.hops - k):
            low = low + s @ low
        matrices.append(math.comb(o.hops, k) / 2**o.hops * low)
        x = x - s @ x
    return matrices


def chebyshev(s: GCNNorm, x: Matrix, o: Poly) -> list[Matrix]:
    """Tₖ(−S) x, where −S is the Laplacian minus 1."""
    matrices = [x, -(s @ x)][: o.hops + 1]
    for _ in range(o.hops - 1):
        matrices.append(-2 * (s @ matrices[-1]) - matrices[-2])
    return matrices


def jacobi(s: GCNNorm, x: Matrix, o: Poly) -> list[Matrix]:
    """Pₖ^(a,b)(S) x by their recurrence."""
    a, b = o.jacobi_a, o.jacobi_b
    matrices = [x, (a - b) / 2 * x + (a + b + 2) / 2 * (s @ x)][: o.hops + 1]
    for k in range(2, o.hops + 1):
        c = 2 * k + a + b
        scale = 2 * k * (k + a + b) * (c - 2)
        one, two = matrices[-1], matrices[-2]
        first = (c - 1) * (c * (c - 2) * (s @ one) + (a * a - b * b) * one)
        second = 2 * (k + a - 1) * (k + b - 1) * c * two
        matrices.append((first - second) / scale)
    return matrices


def optimal(s: GCNNorm, x: Matrix, o: Poly) -> list[Matrix]:
    """Orthonormal columns Sᵏ x by Lanczos, times the root of the number of nodes."""
    zero = torch.zeros_like(x)
    matrices = [zero, unit_columns(x)]
    for _ in range(o.hops):
        before, last = matrices[-2:]
        v = s @ last
        for h in (last, before):
            v = v - (v * h).sum(0) * h
        matrices.append(unit_columns(v))
    return [math.sqrt(max(1, len(x))) * h for h in matrices[1:]]


def unit_columns(x: Matrix) -> Matrix:
    """Columns of length one."""
    return x / x.norm(dim=0).clamp(min=MIN_NORM)


BASES: dict[Basis, Callable[[GCNNorm, Matrix, Poly], list[Matrix]]] = {
    "monomial": monomial,
    "bernstein": bernstein,
    "chebyshev": chebyshev,
    "jacobi": jacobi,
    "optimal": optimal,
}
