"""Sums over walks of up to three steps along edges and shared features."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import no_type_check

import numba
import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from unalike.data.adjacency import Adjacency, Ids
from unalike.data.csr import SMALL_NNZ, row_blocks
from unalike.data.graph import Features, Graph
from unalike.data.numba_utils import njit
from unalike.parallel import num_threads
from unalike.system import free_memory
from unalike.views.blocks import CHUNK, empty_columns

MIN_SHARED_FEATURES = 30
"""Columns from which features are taken for indicators that nodes share."""
MAX_SHARED_ENTRIES = 2**26
"""Non-zero features above which there is no walk over shared ones."""
MAX_NNZ_AT_ONCE = 2**24
"""Entries of a block of rows that is copied at once."""
DEVICE_COLUMNS = 600
"""Columns of all nodes that are on a GPU at once at most."""
BACK = {"o": "i", "i": "o", "a": "a", "x": "y", "y": "x"}
"""The step that goes the other way."""
NUM_BLOCKS = 16
"""Blocks of rows that threads work on, each with an array of marks."""

Columns = Float[Tensor, "nodes columns"]


@dataclass(frozen=True)
class Walk:
    """A sequence of steps: `o` along an out-edge, `i` along an in-edge, `a` along an
    undirected edge, `x` and `y` to a feature and back.

    With `mean` every step after the first takes the mean over its ends, else the sum.
    """

    steps: str
    mean: bool = False

    @property
    def name(self) -> str:
        return self.steps + "/mean" * self.mean

    @property
    def rest(self) -> Walk:
        return Walk(self.steps[1:], self.mean and len(self.steps) > 2)


@dataclass(frozen=True, eq=False)
class Walks:
    """All walks of a graph without its self-loops, with the matrix of each step."""

    matrices: Mapping[str, Adjacency]
    walks: tuple[Walk, ...]
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    """Where sums are computed."""

    @classmethod
    def of(cls, graph: Graph, hops: int, device: torch.device | str = "cpu") -> Walks:
        """Walks of up to `hops` steps; both directions of directed edges.

        Of walks of two steps there are sums and means, of longer ones means. Nodes that
        share one of at least 30 features are connected by one more walk, unless there
        are too many entries.
        """
        adjacency = without_loops(graph.adjacency)
        matrices = {"a": adjacency}
        if graph.directed:
            matrices = {"o": adjacency, "i": adjacency.T}
        walks = [
            Walk("".join(steps), mean)
            for length in range(1, hops + 1)
            for steps in product(matrices, repeat=length)
            for mean in ([False], [False, True], [True])[min(length, 3) - 1]
        ]
        if shares_features(graph.features):
            matrices |= {"x": indicators(graph.features)}
            matrices |= {"y": matrices["x"].T}
            walks.append(Walk("xy", mean=True))
        return cls(matrices, tuple(walks), torch.device(device))

    @property
    def fit_on_device(self) -> bool:
        """Whether matrices and columns have room on the device."""
        if self.device.type == "cpu":
            return True
        num_rows = max(matrix.num_rows for matrix in self.matrices.values())
        size = sum(matrix.nbytes for matrix in self.matrices.values())
        size += 4 * DEVICE_COLUMNS * num_rows
        return size < free_memory(self.device)

    @cached_property
    def on_device(self) -> dict[str, Adjacency]:
        return {step: matrix.to(self.device) for step, matrix in self.matrices.items()}

    @property
    def along_edges(self) -> tuple[Walk, ...]:
        """The walks along edges only."""
        return tuple(walk for walk in self.walks if "x" not in walk.steps)

    def sums(
        self, x: Columns, walks: Sequence[Walk] | None = None
    ) -> Iterator[tuple[Walk, Columns]]:
        """For each walk, the sum of x over the nodes where it ends.

        Walks that end alike share their last steps. Products of adjacencies are never
        computed.
        """
        shared: dict[Walk, Columns] = {}
        x = x.to(self.device)

        def total(walk: Walk) -> Columns:
            matrix = self.on_device[walk.steps[0]]
            if len(walk.steps) == 1:
                return matrix @ x
            rest = walk.rest
            if rest not in shared:
                shared[rest] = total(rest)
            ends = shared[rest]
            if walk.mean:
                ends = ends * self.inverse_degrees[walk.steps[1]][:, None]
            return matrix @ ends

        rests = {walk.rest for walk in self.walks if walk.steps[1:]}
        for walk in self.walks if walks is None else walks:
            value = shared[walk] if walk in shared else total(walk)
            if walk in rests:
                shared[walk] = value
            yield walk, value

    def ends(
        self, x: Columns, walks: Sequence[Walk] | None = None
    ) -> Iterator[tuple[Walk, Columns]]:
        """For each walk, what its first step sums over: x behind all other steps."""
        chosen = self.walks if walks is None else walks
        rests = dict.fromkeys(walk.rest for walk in chosen if walk.steps[1:])
        totals = dict(self.sums(x, tuple(rests)))
        for walk in chosen:
            value = totals[walk.rest] if walk.steps[1:] else x
            if walk.mean:
                value = value * self.inverse_degrees[walk.steps[1]][:, None]
            yield walk, value

    @cached_property
    def inverse_degrees(self) -> dict[str, Float[Tensor, " rows"]]:
        """1 / degree of every row of the matrix of a step, 0 for an empty row."""
        return {step: inverse(matrix) for step, matrix in self.on_device.items()}

    @cached_property
    def returning(self) -> dict[Walk, Float[Tensor, " nodes"]]:
        """For each walk, the weight with which a node's own value enters its sum."""
        return {walk: self._returning(walk) for walk in self.walks}

    def _returning(self, walk: Walk) -> Float[Tensor, " nodes"]:
        """The diagonal of the product of the matrices of a walk."""
        first, *others = (self.matrices[step] for step in walk.steps)
        if not others:
            return torch.zeros(first.num_rows, device=self.device)
        weights = [self.inverse_degrees[step].cpu() for step in walk.steps[1:]]
        if not walk.mean:
            weights = [torch.ones_like(weight) for weight in weights]
        last = self.matrices[BACK[walk.steps[-1]]]
        if len(others) == 1:
            result = masked_sums(first, last, weights[0])
        else:
            result = three_step_returns(first, weights[0], others[0], weights[1], last)
        return result.to(self.device)


def without_loops(adjacency: Adjacency) -> Adjacency:
    """The matrix of ones at the same places, without the diagonal."""
    pattern = adjacency.pattern
    if adjacency.diagonal.any():
        pattern = kept_entries(pattern, torch.ne)
    return pattern._mark_symmetric(adjacency._symmetric)


def kept_entries(
    matrix: Adjacency, keep: Callable[[Ids, Ids], Bool[Tensor, " entries"]]
) -> Adjacency:
    """Ones where `keep` is true for row and column of an entry, by blocks of rows."""
    indptr = torch.zeros(matrix.num_rows + 1, dtype=torch.int64)
    indices = empty_columns((matrix.nnz,)).view(torch.int32)
    for low, high in row_blocks(matrix.indptr.numpy(), MAX_NNZ_AT_ONCE):
        part, end = matrix[low:high], int(indptr[low])
        kept = keep(part.row_indices + low, part.indices)
        counts = torch.cat([torch.zeros(1, dtype=torch.int64), kept.cumsum(0)])
        indptr[low : high + 1] = end + counts[part.indptr]
        indices[end : int(indptr[high])] = part.indices[kept]
    return Adjacency(indptr, indices[: int(indptr[-1])], matrix.num_cols)


def shares_features(features: Features) -> bool:
    """Whether there are enough features, and not too many entries, to take them for
    indicators that nodes share."""
    if features.shape[1] < MIN_SHARED_FEATURES:
        return False
    if isinstance(features, Adjacency):
        return features.nnz <= MAX_SHARED_ENTRIES
    count = sum(int(rows.count_nonzero()) for rows in features.split(CHUNK))
    return count <= MAX_SHARED_ENTRIES


def indicators(features: Features) -> Adjacency:
    """The matrix of ones where features are not zero."""
    if isinstance(features, Adjacency):
        return features.pattern
    return Adjacency.from_dense(features != 0)


def inverse(matrix: Adjacency) -> Float[Tensor, " rows"]:
    """1 / degree of every row, 0 for an empty row."""
    degrees = matrix.degrees.float()
    return torch.where(degrees > 0, 1 / degrees.clamp(min=1), 0.0)


def masked_sums(
    first: Adjacency, second: Adjacency, weights: Float[Tensor, " columns"]
) -> Float[Tensor, " rows"]:
    """For each row, the sum of the weights of the columns that both matrices have."""
    if first is second:
        return (first @ weights[:, None])[:, 0]
    if max(first.nnz, second.nnz) <= SMALL_NNZ:
        both = first.to_scipy().multiply(second.to_scipy()).tocsr()
        return torch.from_numpy(both @ weights.numpy()).float()
    result = torch.empty(first.num_rows)
    arrays = (first.indptr, first.indices, second.indptr, second.indices, weights)
    _masked_sums(result.numpy(), *(array.numpy() for array in arrays))
    return result


@no_type_check
@njit(parallel=True)
def _masked_sums(result, p1, i1, p2, i2, weights):
    for row in numba.prange(len(result)):
        total = np.float32(0)
        a, b = p1[row], p2[row]
        while a < p1[row + 1] and b < p2[row + 1]:
            if i1[a] == i2[b]:
                total += weights[i1[a]]
                a += 1
                b += 1
            elif i1[a] < i2[b]:
                a += 1
            else:
                b += 1
        result[row] = total


def three_step_returns(
    first: Adjacency,
    first_weight: Float[Tensor, " nodes"],
    second: Adjacency,
    second_weight: Float[Tensor, " nodes"],
    last: Adjacency,
) -> Float[Tensor, " rows"]:
    """The diagonal of first w second v last^T."""
    result = np.zeros(first.num_rows)
    arrays = [
        array.numpy()
        for matrix in (first, second, last)
        for array in (matrix.indptr, matrix.indices)
    ]
    weights = (first_weight.double().numpy(), second_weight.double().numpy())
    bounds = np.linspace(0, first.num_rows, NUM_BLOCKS + 1).astype(np.int64)
    _three_step_returns(result, bounds, *arrays, *weights)
    return torch.from_numpy(result).float()


@no_type_check
@njit(parallel=True)
def _three_step_returns(result, bounds, p1, i1, p2, i2, p3, i3, w1, w2):
    for block in numba.prange(len(bounds) - 1):
        mark = np.full(len(w2), -1, np.int64)
        for row in range(bounds[block], bounds[block + 1]):
            for entry in range(p3[row], p3[row + 1]):
                mark[i3[entry]] = row
            total = 0.0
            for entry in range(p1[row], p1[row + 1]):
                j = i1[entry]
                for other in range(p2[j], p2[j + 1]):
                    if mark[i2[other]] == row:
                        total += w1[j] * w2[i2[other]]
            result[row] = total


def closed_triples(matrix: Adjacency) -> Float[Tensor, " rows"]:
    """Twice the triangles of each node of a symmetric matrix without self-loops.

    Every triangle is found once, from its node of the lowest degree, so that nodes of
    high degree cost little.
    """
    indptr, indices = matrix.indptr.numpy(), matrix.indices.numpy()
    forward, ends = np.empty_like(indices), np.empty(matrix.num_rows, np.int64)
    _select_forward(forward, ends, indptr, indices)
    counts = np.zeros((num_threads(), matrix.num_rows), np.int64)
    _count_triangles(counts, indptr, ends, forward)
    return torch.from_numpy(2.0 * counts.sum(0)).float()


@no_type_check
@njit(parallel=True)
def _select_forward(forward, ends, indptr, indices):
    """Neighbours of higher degree, or as high and higher id, to the front of a row."""
    for row in numba.prange(len(ends)):
        end, own = indptr[row], indptr[row + 1] - indptr[row]
        for entry in range(indptr[row], indptr[row + 1]):
            other = indices[entry]
            degree = indptr[other + 1] - indptr[other]
            if degree > own or (degree == own and other > row):
                forward[end] = other
                end += 1
        ends[row] = end


@no_type_check
@njit(parallel=True)
def _count_triangles(counts, indptr, ends, forward):
    """Add the triangles of each node; each thread has counts of its own."""
    threads, num_rows = counts.shape
    for thread in numba.prange(threads):
        mark = np.full(num_rows, -1, np.int32)
        for row in range(thread, num_rows, threads):
            for entry in range(indptr[row], ends[row]):
                mark[forward[entry]] = row
            for entry in range(indptr[row], ends[row]):
                j = forward[entry]
                for other in range(indptr[j], ends[j]):
                    k = forward[other]
                    if mark[k] == row:
                        counts[thread, row] += 1
                        counts[thread, j] += 1
                        counts[thread, k] += 1
