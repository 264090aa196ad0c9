"""Tally: the sums over nodes and edges that every one-hop measure is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import no_type_check

import numpy as np
from jaxtyping import Float

from unalike.kernels.compiled import compiled
from unalike.kernels.streams import STEP, stirred
from unalike.measures.blocks import over_blocks
from unalike.measures.view import View
from unalike.progress import SILENT, Progress

Matrix = Float[np.ndarray, "classes classes"]
Vector = Float[np.ndarray, " classes"]

EDGES, SHARES, SQUARES = range(3)
FEWEST, ROOM = 16, 2**20
NODES, ACTIVE, DEGREE_SQUARES, LOOPS = range(4)


@dataclass(frozen=True, eq=False)
class Tally:
    """What one pass over the edges leaves, by class; d is a node's counted edges."""

    edges: Matrix
    """Counted edges from a class to a class."""
    shares: Matrix
    """Over the nodes of a class, the sum of the shares of their edges into a class."""
    squares: Matrix
    """The same sum of squared numbers of such edges, each divided by d."""
    nodes: Vector
    active: Vector
    """Nodes with a counted edge."""
    degree_squares: Vector
    """The sum of d * d."""
    num_loops: int
    directed: bool


@dataclass(frozen=True, eq=False)
class Groups:
    """The same sums over random groups of nodes, so that groups can be resampled."""

    matrices: Float[np.ndarray, "groups 3 codes codes"]
    vectors: Float[np.ndarray, "groups 4 codes"]
    num_counted: int
    directed: bool

    def total(self) -> Tally:
        """The tally of all nodes."""
        return self.weighted(np.ones(len(self.vectors)))

    def weighted(self, weights: Float[np.ndarray, " groups"]) -> Tally:
        """The tally in which each group counts so many times."""
        matrices = np.tensordot(weights, self.matrices, 1)
        vectors = np.tensordot(weights, self.vectors, 1)
        counted = slice(self.num_counted)
        return Tally(
            edges=matrices[EDGES, counted, counted],
            shares=matrices[SHARES, counted, counted],
            squares=matrices[SQUARES, counted, counted],
            nodes=vectors[NODES, counted],
            active=vectors[ACTIVE, counted],
            degree_squares=vectors[DEGREE_SQUARES, counted],
            num_loops=int(vectors[LOOPS].sum()),
            directed=self.directed,
        )


def tally(
    view: View, *, groups: int = 1, seed: int = 0, progress: Progress = SILENT
) -> Groups:
    """Read every edge once and add up what it says.

    The edges are read where they lie; beside them a few small matrices are kept, fewer
    groups of them where there are very many classes.
    """
    codes = view.graph.num_classes + 1
    groups = max(1, min(groups, view.num_nodes, max(FEWEST, ROOM // codes**2)))

    def work(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        matrices = np.zeros((groups, 3, codes, codes))
        vectors = np.zeros((groups, 4, codes))
        settings = (view.num_counted, view.convention.loops, seed)
        rows = (view.starts, view.columns, view.codes)
        _count(*rows, first, last, *settings, matrices, vectors)
        return matrices, vectors

    matrices = np.zeros((groups, 3, codes, codes))
    vectors = np.zeros((groups, 4, codes))
    progress.stage("counting edges", float(view.starts[-1]), "edges")
    for part in over_blocks(view.starts, work, progress=progress):
        matrices += part[0]
        vectors += part[1]
    return Groups(matrices, vectors, view.num_counted, view.graph.directed)


@compiled()
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


@compiled()
@no_type_check
def _add(sums, seen, other, degree):
    count = seen[other]
    if count:
        share = count / max(degree, 1)
        sums[EDGES, other] += count
        sums[SHARES, other] += share
        sums[SQUARES, other] += share * count
        seen[other] = 0


@compiled()
@no_type_check
def _group(node, seed, groups, nodes):
    """A group drawn by the node's number."""
    if groups == 1 or groups == nodes:  # a test of membership is slow to compile
        return min(node, groups - 1)
    drawn = stirred(np.uint64(node) + np.uint64(seed) * STEP)
    return np.int64(drawn % np.uint64(groups))
