"""Views that need no labels: structure, features along walks, spectrum."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Features
from unalike.views.blocks import Block
from unalike.views.rows import BACK, KnownGraph, NodeRows
from unalike.views.walks import inverse, three_step_returns

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

GraphView = Callable[[KnownGraph, NodeRows], dict[str, Block]]


def structure(known: KnownGraph, rows: NodeRows) -> dict[str, Block]:
    """Degrees, self-loops, reciprocity, PageRank, degrees of neighbours, triangles."""
    steps, matrices = known.directions, known.walks.matrices
    log_degrees = torch.stack(
        [matrices[step].degrees.float().log1p() for step in steps], 1
    )
    own = [rows.matrices[step] for step in steps]
    columns = [
        torch.stack([matrix.degrees.float().log1p() for matrix in own], 1),
        rows.loops[:, None],
    ]
    if len(own) == 2:
        both = torch.from_numpy(
            np.asarray(own[0].to_scipy().multiply(own[1].to_scipy()).sum(1))
        ).float()
        columns += [both[:, None] * inverse(m)[:, None] for m in own]
    for step in steps:
        back = rows.matrices[BACK[step]]
        columns += [
            pagerank(matrices[step], back).log()[:, None],
            *_degrees_nearby(matrices[step], rows.matrices[step], back, log_degrees),
        ]
    columns.append(_triangles(matrices[steps[0]], own[0]))
    return {"structure": Block(torch.cat(columns, 1))}


def _degrees_nearby(
    known: Adjacency,
    rows: Adjacency,
    back: Adjacency,
    log_degrees: Float[Tensor, "nodes directions"],
) -> list[Float[Tensor, "rows columns"]]:
    """Mean and spread of log degrees of neighbours, and their means two steps away."""
    share, known_share = inverse(rows)[:, None], inverse(known)[:, None]
    mean = rows @ log_degrees * share
    known_mean = known @ log_degrees * known_share
    spread = (rows @ log_degrees**2 * share - mean**2).clamp(min=0).sqrt()
    two_steps = rows @ known_mean * share
    there_and_back = back @ known_mean * inverse(back)[:, None]
    return [(rows @ known_share).log1p(), mean, spread, two_steps, there_and_back]


def pagerank(matrix: Adjacency, back: Adjacency) -> Float[Tensor, " rows"]:
    """PageRank along the edges of a matrix, with mean 1 where no node is a dead end.

    The last step is along the rows `back`, which may be those of new nodes.
    """
    share = inverse(matrix)[:, None]
    rank = torch.ones(matrix.num_rows, 1)
    for step in range(PAGERANK_STEPS):
        last = step == PAGERANK_STEPS - 1
        rank = 1 - DAMPING + DAMPING * ((back if last else matrix.T) @ (share * rank))
    return rank[:, 0]


def _triangles(known: Adjacency, rows: Adjacency) -> Float[Tensor, "rows columns"]:
    """Closed triples of each node, as a log count and as a share of all pairs."""
    if float((known @ known.degrees.float()[:, None]).sum()) > MAX_TRIANGLE_STEPS:
        return torch.zeros(rows.num_rows, 0)
    ones, degrees = torch.ones(known.num_rows), rows.degrees.float()
    count = three_step_returns(rows, ones, known, ones, rows)
    share = count / (degrees * (degrees - 1)).clamp(min=1)
    return torch.stack([count.log1p(), share], 1)


def features(known: KnownGraph, rows: NodeRows) -> dict[str, Block]:
    """Features, and their means over walks of one and two steps, own part removed."""
    if not known.graph.num_features:
        return {}
    walks = known.walks
    x = reduced_features(known, known.graph.features)
    own = x if rows.is_whole else reduced_features(known, rows.features)
    blocks = {"features": Block(own)}
    chosen = [walk for walk in walks.along_edges if len(walk.steps) == 1 or walk.mean]
    for walk, total in rows.sums(walks, x, chosen):
        if rows.ids is not None:
            total = total - walks.returning[walk][rows.ids][:, None] * own
        share = inverse(rows.matrices[walk.steps[0]])[:, None]
        blocks[f"features:{walk.name}"] = Block(total * share)
    return blocks


def reduced_features(
    known: KnownGraph, features: Features
) -> Float[Tensor, "nodes columns"]:
    """Dense features, or where they are wide, unit rows projected on the leading
    right singular vectors of those of the known graph."""
    if features.shape[1] <= MAX_FEATURES:
        return features.to_dense().float()
    if "features" not in known.vectors:
        right = truncated_svd(unit_rows(known.graph.features), RANK)[2]
        known.vectors["features"] = right.contiguous()
    scale = known.graph.num_nodes**0.5
    return unit_rows(features) @ known.vectors["features"] * scale


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


def spectrum(known: KnownGraph, rows: NodeRows) -> dict[str, Block]:
    """Rows of the adjacency, normalised by degrees on both sides, projected on its
    singular vectors."""
    step, *others = known.directions
    matrix = known.walks.matrices[step]
    if "spectrum:out" not in known.vectors:
        left, _, right = truncated_svd(_normalised(matrix, matrix.T), RANK)
        known.vectors["spectrum:out"] = right.contiguous()
        if others:
            known.vectors["spectrum:in"] = left.contiguous()
    scale = known.graph.num_nodes**0.5
    out = _normalised(rows.matrices[step], matrix.T) @ known.vectors["spectrum:out"]
    blocks = {"spectrum:out": Block(out * scale)}
    if others:
        into = _normalised(rows.matrices[others[0]], matrix)
        blocks["spectrum:in"] = Block(into @ known.vectors["spectrum:in"] * scale)
    return blocks


def _normalised(rows: Adjacency, columns: Adjacency) -> Adjacency:
    """Rows divided by the roots of their degrees and of those of their columns."""
    own, other = (m.degrees.clamp(min=1).float().rsqrt() for m in (rows, columns))
    return Adjacency(
        rows.indptr,
        rows.indices,
        rows.num_cols,
        own[rows.row_indices] * other[rows.indices.long()],
    )


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
