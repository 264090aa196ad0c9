"""One streaming pass over the edges: counts by class, degree histogram, bootstrap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar, no_type_check

import numpy as np
from jaxtyping import Float, Int

from unalike.data.graph import Graph
from unalike.data.numba_utils import STEP, mix64, njit
from unalike.errors import UserError
from unalike.measures.conventions import Convention
from unalike.parallel import ordered_map
from unalike.progress import NO_PROGRESS, Progress

# View: a graph under one convention, as the kernels read it.


@dataclass(frozen=True, eq=False)
class GraphView:
    """Plain arrays over the memory of the graph; a mapped graph stays mapped."""

    graph: Graph
    convention: Convention
    starts: Int[np.ndarray, " nodes_and_one"]
    columns: Int[np.ndarray, " edges"]
    class_ids: Int[np.ndarray, " nodes"]
    """The class of each node; the number of classes where it is unknown."""
    num_valid_classes: int
    """Codes below this one count."""

    @classmethod
    def of(cls, graph: Graph, convention: Convention) -> GraphView:
        """The graph as the convention reads it."""
        rows, width = graph.adjacency.shape
        if rows != width:
            raise UserError(
                f"Measures need a whole graph; this batch has {rows} of {width} rows."
            )
        seen = graph.to_undirected() if convention.both_ways else graph
        adjacency = seen.adjacency.to("cpu")
        return cls(
            graph=seen,
            convention=convention,
            starts=adjacency.indptr.numpy(),
            columns=adjacency.indices.numpy(),
            class_ids=_codes(graph),
            num_valid_classes=graph.num_classes + convention.unlabelled,
        )

    @property
    def num_nodes(self) -> int:
        return len(self.class_ids)

    @property
    def is_valid(self) -> np.ndarray:
        """Does the class of each node count?"""
        return self.class_ids < self.num_valid_classes


def _codes(graph: Graph) -> np.ndarray:
    # Small types keep the labels of millions of nodes in the processor's cache.
    dtype = np.int16 if graph.num_classes < np.iinfo(np.int16).max else np.int32
    codes: np.ndarray = graph.labels.cpu().numpy().astype(dtype)
    codes[codes < 0] = graph.num_classes
    return codes


# Blocks of rows with about equally many edges, worked on side by side.

Made = TypeVar("Made")

BLOCK_EDGES = 4_000_000


def map_row_blocks(
    starts: Int[np.ndarray, " nodes_and_one"],
    work: Callable[[int, int], Made],
    *,
    progress: Progress = NO_PROGRESS,
) -> Iterator[Made]:
    """What `work` makes of each block of rows, from a first to before a last, in order.

    The blocks do not depend on the number of threads, and so neither does any sum.
    """
    nodes, edges = len(starts) - 1, int(starts[-1])
    marks = np.searchsorted(starts, np.arange(BLOCK_EDGES, edges, BLOCK_EDGES))
    blocks = list(pairwise(np.unique([0, *marks, nodes]).tolist()))
    made = ordered_map(lambda block: work(*block), blocks)
    for (first, last), part in zip(blocks, made, strict=True):
        progress.advance(float(starts[last] - starts[first]))
        yield part


# Tally: the sums over nodes and edges that every one-hop measure is made of.


Matrix = Float[np.ndarray, "classes classes"]
Vector = Float[np.ndarray, " classes"]

EDGES, SHARES, SQUARES = range(3)
MIN_GROUPS, MAX_GROUP_CELLS = 16, 2**20
NODES, ACTIVE, DEGREE_SQUARES, LOOPS = range(4)


@dataclass(frozen=True, eq=False)
class EdgeStatistics:
    """What one pass over the edges leaves, by class; d is a node's counted edges."""

    edges: Matrix
    """Counted edges from a class to a class."""
    neighbour_shares: Matrix
    """Over the nodes of a class, the sum of the shares of their edges into a class."""
    squares: Matrix
    """The same sum of squared numbers of such edges, each divided by d."""
    nodes: Vector
    nodes_with_edges: Vector
    """Nodes with a counted edge."""
    degree_squares: Vector
    """The sum of d * d."""
    num_loops: int
    directed: bool


@dataclass(frozen=True, eq=False)
class GroupedEdgeStatistics:
    """The same sums over random groups of nodes, so that groups can be resampled."""

    matrices: Float[np.ndarray, "groups 3 codes codes"]
    vectors: Float[np.ndarray, "groups 4 codes"]
    num_counted: int
    directed: bool

    def total(self) -> EdgeStatistics:
        """The tally of all nodes."""
        return self.weighted(np.ones(len(self.vectors)))

    def weighted(self, weights: Float[np.ndarray, " groups"]) -> EdgeStatistics:
        """The tally in which each group counts so many times."""
        matrices = np.tensordot(weights, self.matrices, 1)
        vectors = np.tensordot(weights, self.vectors, 1)
        counted = slice(self.num_counted)
        return EdgeStatistics(
            edges=matrices[EDGES, counted, counted],
            neighbour_shares=matrices[SHARES, counted, counted],
            squares=matrices[SQUARES, counted, counted],
            nodes=vectors[NODES, counted],
            nodes_with_edges=vectors[ACTIVE, counted],
            degree_squares=vectors[DEGREE_SQUARES, counted],
            num_loops=int(vectors[LOOPS].sum()),
            directed=self.directed,
        )


def count_edges(
    view: GraphView, *, groups: int = 1, seed: int = 0, progress: Progress = NO_PROGRESS
) -> GroupedEdgeStatistics:
    """Read every edge once and add up what it says.

    The edges are read where they lie; beside them a few small matrices are kept, fewer
    groups of them where there are very many classes.
    """
    codes = view.graph.num_classes + 1
    groups = max(
        1, min(groups, view.num_nodes, max(MIN_GROUPS, MAX_GROUP_CELLS // codes**2))
    )

    def work(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        matrices = np.zeros((groups, 3, codes, codes))
        vectors = np.zeros((groups, 4, codes))
        settings = (view.num_valid_classes, view.convention.loops, seed)
        rows = (view.starts, view.columns, view.class_ids)
        _count(*rows, first, last, *settings, matrices, vectors)
        return matrices, vectors

    matrices = np.zeros((groups, 3, codes, codes))
    vectors = np.zeros((groups, 4, codes))
    progress.stage("counting edges", float(view.starts[-1]), "edges")
    for part in map_row_blocks(view.starts, work, progress=progress):
        matrices += part[0]
        vectors += part[1]
    return GroupedEdgeStatistics(
        matrices, vectors, view.num_valid_classes, view.graph.directed
    )


@njit()
@no_type_check
def _count(
    starts, columns, codes, first, last, num_counted, loops, seed, matrices, vectors
):
    seen = np.zeros(matrices.shape[-1], np.int64)
    for node in range(first, last):
        own, group = codes[node], _group(node, seed, len(vectors), len(codes))
        row = columns[starts[node] : starts[node + 1]]
        degree = np.int64(0)
        for column in row:
            other, weight = codes[column], 1
            if column == node:
                weight = loops
                vectors[group, LOOPS, own] += 1
            seen[other] += weight
            degree += weight * (other < num_counted)
        vectors[group, NODES, own] += 1
        vectors[group, ACTIVE, own] += degree > 0
        vectors[group, DEGREE_SQUARES, own] += degree * degree
        if len(seen) < 2 * len(row):
            for other in range(len(seen)):
                _add(matrices[group, :, own], seen, other, degree)
        else:
            for column in row:
                _add(matrices[group, :, own], seen, np.int64(codes[column]), degree)


@njit()
@no_type_check
def _add(sums, seen, other, degree):
    count = seen[other]
    if count:
        share = count / max(degree, 1)
        sums[EDGES, other] += count
        sums[SHARES, other] += share
        sums[SQUARES, other] += share * count
        seen[other] = 0


@njit()
@no_type_check
def _group(node, seed, groups, nodes):
    """A group drawn by the node's number."""
    if groups == 1 or groups == nodes:  # a test of membership is slow to compile
        return min(node, groups - 1)
    drawn = mix64(np.uint64(node) + np.uint64(seed) * STEP)
    return np.int64(drawn % np.uint64(groups))


# The degree distribution: how many nodes have how many neighbours.


def degree_histogram(
    view: GraphView,
) -> tuple[Int[np.ndarray, " degrees"], Int[np.ndarray, " degrees"]]:
    """Every degree that occurs, and the number of nodes that have it.

    The degree is the length of a row, loops and unlabelled neighbours included.
    """
    counts = np.bincount(np.diff(view.starts))
    degrees = np.flatnonzero(counts)
    return degrees, counts[degrees]


# The bootstrap: how much a measure would move with other nodes.


BOOTSTRAP_GROUPS = 256
"""Groups of nodes that are resampled; a smaller graph has one group per node."""


def bootstrap_interval(
    groups: GroupedEdgeStatistics,
    of: Callable[[EdgeStatistics], float],
    replicates: int,
    seed: int = 0,
) -> tuple[float, float]:
    """The middle 95 % of a measure over resampled graphs.

    What is drawn with replacement are nodes with their out-edges, in random groups, so
    that one pass over the edges serves every replicate.
    """
    draw = np.random.default_rng(seed)
    size = len(groups.vectors)
    weights = draw.multinomial(size, np.full(size, 1 / size), replicates).astype(float)
    values = np.array([of(groups.weighted(row)) for row in weights])
    known = values[~np.isnan(values)]
    low, high = np.quantile(known, [0.025, 0.975]) if len(known) else (np.nan, np.nan)
    return float(low), float(high)
