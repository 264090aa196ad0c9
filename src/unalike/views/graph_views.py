"""Views that need no labels: structure, features along walks, spectrum."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Features, Graph
from unalike.views.blocks import Block
from unalike.views.walks import Walks, inverse, three_step_returns

MAX_FEATURES = 300
"""Features with more columns are replaced by their leading singular vectors."""
RANK = 64
"""Singular vectors of wide features and of the adjacency."""
POWER_ITERATIONS = 6
OVERSAMPLING = 10
PAGERANK_STEPS = 30
DAMPING = 0.85
MAX_TRIANGLE_STEPS = 2e10
"""Pairs of steps above which triangles are not counted."""

GraphView = Callable[[Graph, Walks], dict[str, Block]]


def structure(graph: Graph, walks: Walks) -> dict[str, Block]:
    """Degrees, self-loops, reciprocity, PageRank, degrees of neighbours, triangles."""
    out, *incoming = (walks.matrices[step] for step in "oia" if step in walks.matrices)
    directions = [out, *incoming]
    log_degrees = torch.stack([m.degrees.float().log1p() for m in directions], 1)
    columns = [log_degrees, graph.adjacency.diagonal[:, None]]
    if incoming:
        both = torch.from_numpy(
            np.asarray(out.to_scipy().multiply(incoming[0].to_scipy()).sum(1))
        ).float()
        columns += [both[:, None] * inverse(m)[:, None] for m in directions]
    for matrix in directions:
        columns += [
            pagerank(matrix).log()[:, None],
            *_degrees_nearby(matrix, log_degrees),
        ]
    columns.append(_triangles(out))
    return {"structure": Block(torch.cat(columns, 1))}


def _degrees_nearby(
    matrix: Adjacency, log_degrees: Float[Tensor, "nodes directions"]
) -> list[Float[Tensor, "nodes columns"]]:
    """Mean and spread of log degrees of neighbours, and their means two steps away."""
    share = inverse(matrix)[:, None]
    mean = matrix @ log_degrees * share
    spread = (matrix @ log_degrees**2 * share - mean**2).clamp(min=0).sqrt()
    back = matrix.T
    two_steps = matrix @ mean * share
    there_and_back = back @ mean * inverse(back)[:, None]
    return [(matrix @ share).log1p(), mean, spread, two_steps, there_and_back]


def pagerank(matrix: Adjacency) -> Float[Tensor, " nodes"]:
    """PageRank along the edges of a matrix, with mean 1 where no node is a dead end."""
    back, share = matrix.T, inverse(matrix)[:, None]
    rank = torch.ones(matrix.num_rows, 1)
    for _ in range(PAGERANK_STEPS):
        rank = 1 - DAMPING + DAMPING * (back @ (share * rank))
    return rank[:, 0]


def _triangles(matrix: Adjacency) -> Float[Tensor, "nodes columns"]:
    """Closed triples of each node, as a log count and as a share of all pairs."""
    degrees = matrix.degrees.float()
    if float((matrix @ degrees[:, None]).sum()) > MAX_TRIANGLE_STEPS:
        return torch.zeros(matrix.num_rows, 0)
    ones = torch.ones(matrix.num_rows)
    count = three_step_returns(matrix, ones, matrix, ones, matrix)
    share = count / (degrees * (degrees - 1)).clamp(min=1)
    return torch.stack([count.log1p(), share], 1)


def features(graph: Graph, walks: Walks) -> dict[str, Block]:
    """Features, and their means over walks of one and two steps, own part removed."""
    if not graph.num_features:
        return {}
    x = reduced_features(graph.features)
    blocks = {"features": Block(x)}
    chosen = [walk for walk in walks.along_edges if len(walk.steps) == 1 or walk.mean]
    for walk, total in walks.sums(x, chosen):
        others = total - walks.returning[walk][:, None] * x
        share = walks.inverse_degrees[walk.steps[0]][:, None]
        blocks[f"features:{walk.name}"] = Block(others * share)
    return blocks


def reduced_features(features: Features) -> Float[Tensor, "nodes columns"]:
    """Dense features, or the singular vectors of unit rows where they are wide."""
    if features.shape[1] <= MAX_FEATURES:
        return features.to_dense().float()
    left, values, _ = truncated_svd(unit_rows(features), RANK)
    return left * values * len(left) ** 0.5


def unit_rows(features: Features) -> Features:
    """Features divided by the length of their row."""
    if not isinstance(features, Adjacency):
        return features / features.norm(dim=1, keepdim=True).clamp(min=1e-9)
    values = torch.ones(features.nnz) if features.values is None else features.values
    squares = torch.zeros(features.num_rows).index_add(
        0, features.row_indices, values**2
    )
    scale = 1 / squares.sqrt().clamp(min=1e-9)
    return Adjacency(
        features.indptr,
        features.indices,
        features.num_cols,
        values * scale[features.row_indices],
    )


def spectrum(graph: Graph, walks: Walks) -> dict[str, Block]:
    """Singular vectors of the adjacency, normalised by degrees on both sides."""
    out = walks.matrices["o" if graph.directed else "a"]
    left_scale = out.degrees.clamp(min=1).float().rsqrt()
    right_scale = out.T.degrees.clamp(min=1).float().rsqrt()
    scaled = Adjacency(
        out.indptr,
        out.indices,
        out.num_cols,
        left_scale[out.row_indices] * right_scale[out.indices.long()],
    )
    left, values, right = truncated_svd(scaled, RANK)
    factor = values * graph.num_nodes**0.5
    blocks = {"spectrum:out": Block(left * factor)}
    if graph.directed:
        blocks["spectrum:in"] = Block(right * factor)
    return blocks


def truncated_svd(
    matrix: Features, rank: int
) -> tuple[
    Float[Tensor, "rows rank"], Float[Tensor, " rank"], Float[Tensor, "columns rank"]
]:
    """Leading singular vectors by randomised subspace iteration (Halko et al. 2011)."""
    rank = max(1, min(rank, *(size // 4 for size in matrix.shape)))
    generator = torch.Generator().manual_seed(0)
    width = min(rank + OVERSAMPLING, *matrix.shape)
    basis = torch.randn(matrix.shape[1], width, generator=generator)
    transposed = matrix.T
    for _ in range(POWER_ITERATIONS):
        basis = _orthonormal(matrix @ basis)
        basis = _orthonormal(transposed @ basis)
    basis = _orthonormal(matrix @ basis)
    small, values, right = torch.linalg.svd((transposed @ basis).T, full_matrices=False)
    return (basis @ small)[:, :rank], values[:rank], right[:rank].T


def _orthonormal(x: Float[Tensor, "rows width"]) -> Float[Tensor, "rows width"]:
    return torch.linalg.qr(x).Q


GRAPH_VIEWS: dict[str, GraphView] = {
    "structure": structure,
    "features": features,
    "spectrum": spectrum,
}
"""Groups of views made from the graph alone. To add one: a function and a line here."""
