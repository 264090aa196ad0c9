"""Views that need no labels: structure, features along walks, spectrum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Features
from unalike.views.blocks import CHUNK, Block, empty_columns, store_columns
from unalike.views.rows import KnownGraph, NodeRows, unit_rows
from unalike.views.walks import (
    BACK,
    closed_triples,
    inverse,
    masked_sums,
    three_step_returns,
)

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

MANY_ROWS = 100_000
"""Rows from which singular vectors are computed by Gram matrices, which is faster and
needs less memory than QR."""

GraphView = Callable[[KnownGraph, NodeRows], dict[str, Block]]


def structure(known: KnownGraph, rows: NodeRows) -> dict[str, Block]:
    """Degrees, self-loops, reciprocity, PageRank, degrees of neighbours, triangles."""
    steps, matrices = known.directions, known.walks.on_device
    log_degrees = torch.stack(
        [matrices[step].degrees.float().log1p() for step in steps], 1
    )
    own = [rows.operands[step] for step in steps]
    columns = [
        torch.stack([matrix.degrees.float().log1p() for matrix in own], 1),
        rows.loops[:, None].to(known.device),
    ]
    if len(own) == 2:
        there, back_again = (rows.matrices[step] for step in steps)
        ones = torch.ones(there.num_cols)
        both = masked_sums(there, back_again, ones).to(known.device)
        columns += [both[:, None] * inverse(m)[:, None] for m in own]
    for step in steps:
        back = rows.operands[BACK[step]]
        rank = pagerank(matrices[step], matrices[BACK[step]], back)
        columns += [
            rank.log()[:, None],
            *_degrees_nearby(matrices[step], rows.operands[step], back, log_degrees),
        ]
    triangles = _triangles(known.walks.matrices[steps[0]], rows.matrices[steps[0]])
    columns.append(triangles.to(known.device))
    return {"structure": Block(store_columns(torch.cat(columns, 1)))}


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


def pagerank(
    matrix: Adjacency, transposed: Adjacency, back: Adjacency
) -> Float[Tensor, " rows"]:
    """PageRank along the edges of a matrix, with mean 1 where no node is a dead end.

    The last step is along the rows `back`, which may be those of new nodes.
    """
    share = inverse(matrix)[:, None]
    rank = torch.ones_like(share)
    for step in range(PAGERANK_STEPS):
        last = step == PAGERANK_STEPS - 1
        rank = 1 - DAMPING + DAMPING * ((back if last else transposed) @ (share * rank))
    return rank[:, 0]


def _triangles(known: Adjacency, rows: Adjacency) -> Float[Tensor, "rows columns"]:
    """Closed triples of each node, as a log count and as a share of all pairs."""
    if float((known @ known.degrees.float()[:, None]).sum()) > MAX_TRIANGLE_STEPS:
        return torch.zeros(rows.num_rows, 0)
    ones, degrees = torch.ones(known.num_rows), rows.degrees.float()
    if rows is known and known.is_symmetric and known.num_rows >= MANY_ROWS:
        count = closed_triples(known)
    else:
        count = three_step_returns(rows, ones, known, ones, rows)
    share = count / (degrees * (degrees - 1)).clamp(min=1)
    return torch.stack([count.log1p(), share], 1)


def features(known: KnownGraph, rows: NodeRows) -> dict[str, Block]:
    """Features, and their means over walks of one and two steps, own part removed."""
    if not known.graph.num_features:
        return {}
    walks = known.walks
    x = reduced_features(known, known.graph.features)
    own = x if rows.whole is not None else reduced_features(known, rows.features)
    blocks = {"features": Block(own)}
    x, own = x.to(known.device), own.to(known.device)
    chosen = [walk for walk in walks.along_edges if len(walk.steps) == 1 or walk.mean]
    for walk, total in rows.sums(walks, x, chosen):
        if rows.ids is not None:
            total = total - walks.returning[walk][rows.ids][:, None] * own
        share = inverse(rows.operands[walk.steps[0]])[:, None]
        blocks[f"features:{walk.name}"] = Block(store_columns(total * share))
    return blocks


def reduced_features(
    known: KnownGraph, features: Features
) -> Float[Tensor, "nodes columns"]:
    """Dense features, or where they are wide, unit rows projected on the leading
    right singular vectors of those of the known graph."""
    if features.shape[1] <= MAX_FEATURES:
        return dense_features(features)
    if "features" not in known.vectors:
        right = feature_vectors(known.graph.features, known.device)
        known.vectors["features"] = right.contiguous()
    scale, vectors = known.graph.num_nodes**0.5, known.vectors["features"]
    if features.shape[0] < MANY_ROWS:
        return unit_features(features) @ vectors * scale
    result = empty_columns((features.shape[0], vectors.shape[1]))
    vectors = vectors.to(known.device)
    for part in row_slices(features.shape[0]):
        rows = unit_features(features[part]).to(known.device)
        result[part] = (rows @ vectors * scale).to(result.device)
    return result


def row_slices(num_rows: int) -> list[slice]:
    """Slices of rows that are computed one after the other."""
    return [slice(low, low + CHUNK) for low in range(0, num_rows, CHUNK)]


def dense_features(features: Features) -> Float[Tensor, "nodes columns"]:
    """Features as float32; dense ones are not copied."""
    if not isinstance(features, Adjacency):
        return features.float()
    if features.num_rows < MANY_ROWS:
        return features.to_dense().float()
    result = empty_columns(features.shape)
    for part in row_slices(features.num_rows):
        result[part] = features[part].to_dense()
    return result


def feature_vectors(
    features: Features, device: torch.device
) -> Float[Tensor, "columns rank"]:
    """The leading right singular vectors of unit rows of features."""
    if features.shape[0] < MANY_ROWS or isinstance(features, Adjacency):
        return truncated_svd(unit_features(features), RANK)[2]
    size = features.shape[1]
    gram = torch.zeros(size, size, dtype=torch.float64, device=device)
    for part in features.split(CHUNK):
        rows = unit_features(part.to(device).float())
        assert isinstance(rows, Tensor)
        gram += (rows.T @ rows).double()
    return torch.linalg.eigh(gram)[1][:, -RANK:].flip(1).float().cpu()


def unit_features(features: Features) -> Features:
    """Features divided by the length of their row."""
    if isinstance(features, Adjacency):
        return unit_rows(features)
    return features / features.norm(dim=1, keepdim=True).clamp(min=1e-9)


def spectrum(known: KnownGraph, rows: NodeRows) -> dict[str, Block]:
    """Rows of the adjacency, normalised by degrees on both sides, projected on its
    singular vectors."""
    step, *others = known.directions
    matrix, back = (known.walks.on_device[s] for s in (step, BACK[step]))
    if "spectrum:out" not in known.vectors:
        left, _, right = truncated_svd(_normalised(matrix, back), RANK)
        known.vectors["spectrum:out"] = right.contiguous().cpu()
        if others:
            known.vectors["spectrum:in"] = left.contiguous().cpu()
    scale = known.graph.num_nodes**0.5
    blocks = {}
    for name, own, columns in (
        ("spectrum:out", rows.operands[step], back),
        *(("spectrum:in", rows.operands[other], matrix) for other in others),
    ):
        product = _normalised(own, columns) @ known.vectors[name].to(known.device)
        blocks[name] = Block(store_columns(product * scale))
    return blocks


@dataclass(frozen=True, eq=False)
class ScaledMatrix:
    """A matrix times a number for each row and column, without a value per entry."""

    matrix: Adjacency
    transposed: Adjacency
    row_scale: Float[Tensor, " rows"]
    column_scale: Float[Tensor, " columns"]

    @property
    def shape(self) -> tuple[int, int]:
        return self.matrix.shape

    @property
    def T(self) -> ScaledMatrix:
        return ScaledMatrix(
            self.transposed, self.matrix, self.column_scale, self.row_scale
        )

    def __matmul__(
        self, x: Float[Tensor, "columns width"]
    ) -> Float[Tensor, "rows width"]:
        product = self.matrix @ (x * self.column_scale[:, None])
        return product.mul_(self.row_scale[:, None])


def _normalised(rows: Adjacency, columns: Adjacency) -> Adjacency | ScaledMatrix:
    """Rows divided by the roots of their degrees and of those of their columns.

    `columns` is the transpose of the known graph.
    """
    own, other = (m.degrees.clamp(min=1).float().rsqrt() for m in (rows, columns))
    if columns.num_rows >= MANY_ROWS or rows.indices.is_cuda:
        return ScaledMatrix(rows, columns, own, other)
    return Adjacency(
        rows.indptr,
        rows.indices,
        rows.num_cols,
        own[rows.row_indices] * other[rows.indices.long()],
    )


SVD = tuple[
    Float[Tensor, "rows rank"], Float[Tensor, " rank"], Float[Tensor, "columns rank"]
]


def truncated_svd(matrix: Features | ScaledMatrix, rank: int) -> SVD:
    """Leading singular vectors by randomised subspace iteration (Halko et al. 2011)."""
    rank = max(1, min(rank, *(size // 4 for size in matrix.shape)))
    generator = torch.Generator().manual_seed(0)
    width = min(rank + OVERSAMPLING, *matrix.shape)
    basis = torch.randn(matrix.shape[1], width, generator=generator)
    transposed = matrix.T
    if isinstance(matrix, ScaledMatrix):
        basis = basis.to(matrix.row_scale.device)
    if max(matrix.shape) >= MANY_ROWS or basis.is_cuda:
        return _svd_by_gram_matrices(matrix, transposed, basis, rank)
    for _ in range(POWER_ITERATIONS):
        basis = torch.linalg.qr(matrix @ basis).Q
        basis = torch.linalg.qr(transposed @ basis).Q
    basis = torch.linalg.qr(matrix @ basis).Q
    small, values, right = torch.linalg.svd((transposed @ basis).T, full_matrices=False)
    return (basis @ small)[:, :rank], values[:rank], right[:rank].T


def _svd_by_gram_matrices(
    matrix: Features | ScaledMatrix,
    transposed: Features | ScaledMatrix,
    basis: Float[Tensor, "columns width"],
    rank: int,
) -> SVD:
    """The same subspace iteration, where eigenvectors of small matrices replace QR.

    Between products a basis need not be orthonormal to the last digit; the last one
    is made so by a second pass.
    """
    for _ in range(POWER_ITERATIONS):
        basis = _rotated_to_unit(matrix @ basis)[0]
        basis = _rotated_to_unit(transposed @ basis)[0]
    basis = _rotated_to_unit(_rotated_to_unit(matrix @ basis)[0])[0]
    right, values, rotation = _rotated_to_unit(transposed @ basis)
    return basis @ rotation[:, :rank], values[:rank], right[:, :rank]


def _rotated_to_unit(x: Float[Tensor, "rows width"]) -> SVD:
    """Left singular vectors, singular values and right singular vectors of x, by the
    eigenvectors of x^T x; vectors of tiny values are small. x is overwritten."""
    gram = torch.zeros(x.shape[1], x.shape[1], dtype=torch.float64, device=x.device)
    for rows in x.split(CHUNK):
        gram += (rows.T @ rows).double()
    squares, vectors = torch.linalg.eigh(gram)
    squares, vectors = squares.flip(0), vectors.flip(1)
    values = squares.clamp(min=float(squares[0]) * 1e-12).clamp(min=1e-30).sqrt()
    mapping = (vectors / values).float()
    for rows in x.split(CHUNK):
        rows.copy_(rows @ mapping)
    return x, values.float(), vectors.float()


GRAPH_VIEWS: dict[str, GraphView] = {
    "structure": structure,
    "features": features,
    "spectrum": spectrum,
}
"""Groups of views made from the graph alone. To add one: a function and a line here."""
