"""Conventions of measures, edge counts by class in one streaming pass, bootstrap."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TypeVar, no_type_check

import numpy as np
import torch
from jaxtyping import Float, Int

from unalike.data.adjacency import Adjacency
from unalike.data.equal_rows import equal_rows
from unalike.data.graph import Graph
from unalike.data.numba_utils import STEP, mix64, njit
from unalike.data.split import Split
from unalike.errors import UserError
from unalike.parallel import ordered_map
from unalike.progress import NO_PROGRESS, Progress


@dataclass(frozen=True)
class Convention:
    """Which edges a measure counts, and with which weight.

    By default self-loops and edges of unlabelled nodes are excluded and every stored
    edge counts once, from source to target. Nodes without a valid edge are excluded
    from means.
    """

    loops: int = 0
    """The weight of a self-loop; other stored edges have the weight 1.

    In an undirected graph a pair of nodes has two stored edges, so 2 makes a self-loop
    count as much as a pair.
    """
    unlabelled: bool = False
    """Treat unlabelled nodes as one more class."""
    both_ways: bool = False
    """Make the graph undirected."""


STORED = Convention()
UNDIRECTED = Convention(both_ways=True)

UNDIRECTED_WITH_UNLABELLED = Convention(both_ways=True, unlabelled=True)
"""Of the two-hop table of the LINKX paper: unlabelled nodes are a class."""

H2GCN_PAIRS = Convention(both_ways=True, loops=2)
"""Of the six small graphs, quoted from H2GCN: a self-loop counts as one pair."""

PAPER_DEFAULT: Mapping[str, Convention] = {
    "node_homophily": UNDIRECTED_WITH_UNLABELLED,
    "two_hop_node_homophily": UNDIRECTED_WITH_UNLABELLED,
}

PAPER_OVERRIDES: Mapping[str, Mapping[str, Convention]] = {
    **{
        name: {"edge_homophily": H2GCN_PAIRS}
        for name in ("cornell", "actor", "squirrel", "texas", "wisconsin")
    },
    "chameleon": {"edge_homophily": H2GCN_PAIRS, "num_edges": Convention(loops=1)},
    "penn94": {"edge_homophily": Convention(unlabelled=True)},
}


def paper_conventions(dataset: str) -> dict[str, Convention]:
    """The convention of each published measure of a dataset, if it is not `STORED`."""
    return {**PAPER_DEFAULT, **PAPER_OVERRIDES.get(dataset, {})}


CONVENTIONS: dict[str, Callable[[str], Convention | Mapping[str, Convention]]] = {
    "stored": lambda _: STORED,
    "both-ways": lambda _: UNDIRECTED,
    "paper": paper_conventions,
}
"""Conventions by name, as functions of the name of a dataset."""


@dataclass(frozen=True, eq=False)
class GraphView:
    """NumPy arrays of a graph under a convention, without a copy of the graph."""

    graph: Graph
    convention: Convention
    indptr: Int[np.ndarray, " nodes_and_one"]
    indices: Int[np.ndarray, " edges"]
    class_ids: Int[np.ndarray, " nodes"]
    """The class of each node; `num_classes` for unlabelled nodes."""
    num_valid_classes: int
    """Nodes with a class id below this one are valid."""
    splits: Sequence[Split] = ()
    """The splits of its nodes, if there are any."""

    @classmethod
    def of(
        cls, graph: Graph, convention: Convention, splits: Sequence[Split] = ()
    ) -> GraphView:
        num_rows, num_cols = graph.adjacency.shape
        if num_rows != num_cols:
            raise UserError(
                "Measures need a full graph; "
                f"this batch has {num_rows} of {num_cols} rows."
            )
        graph = graph.to_undirected() if convention.both_ways else graph
        adjacency = graph.adjacency.to("cpu")
        return cls(
            graph=graph,
            convention=convention,
            indptr=adjacency.indptr.numpy(),
            indices=adjacency.indices.numpy(),
            class_ids=_class_ids(graph),
            num_valid_classes=graph.num_classes + convention.unlabelled,
            splits=splits,
        )

    @property
    def num_nodes(self) -> int:
        return len(self.class_ids)

    @property
    def is_valid(self) -> np.ndarray:
        """Whether the class of each node counts."""
        return self.class_ids < self.num_valid_classes

    @cached_property
    def neighbour_sets(self) -> Int[np.ndarray, " nodes"]:
        """A number for each node that nodes with the same neighbours have in common."""
        indptr, indices = torch.from_numpy(self.indptr), torch.from_numpy(self.indices)
        pattern = Adjacency(indptr, indices, self.num_nodes)
        return equal_rows(pattern, loops=self.convention.loops > 0).numpy()


def _class_ids(graph: Graph) -> np.ndarray:
    # Small integers, so that the labels of millions of nodes fit into the CPU cache.
    dtype = np.int16 if graph.num_classes < np.iinfo(np.int16).max else np.int32
    class_ids: np.ndarray = graph.labels.cpu().numpy().astype(dtype)
    class_ids[class_ids < 0] = graph.num_classes
    return class_ids


Output = TypeVar("Output")

BLOCK_EDGES = 4_000_000


def map_row_blocks(
    indptr: Int[np.ndarray, " nodes_and_one"],
    function: Callable[[int, int], Output],
    *,
    progress: Progress = NO_PROGRESS,
) -> Iterator[Output]:
    """Outputs of a function of each block of rows, `first` to `last`, in order.

    The blocks do not depend on the number of threads, so that sums of floats do not.
    """
    num_nodes, num_edges = len(indptr) - 1, int(indptr[-1])
    bounds = np.searchsorted(indptr, np.arange(BLOCK_EDGES, num_edges, BLOCK_EDGES))
    blocks = list(pairwise(np.unique([0, *bounds, num_nodes]).tolist()))
    outputs = ordered_map(lambda block: function(*block), blocks)
    for (first, last), output in zip(blocks, outputs, strict=True):
        progress.advance(float(indptr[last] - indptr[first]))
        yield output


Matrix = Float[np.ndarray, "classes classes"]
Vector = Float[np.ndarray, " classes"]

# Indices of the sums in the arrays of `GroupedEdgeStatistics`.
EDGES, SHARES, SQUARES = range(3)
NODES, NODES_WITH_EDGES, DEGREE_SQUARES, LOOPS = range(4)

MIN_GROUPS, MAX_GROUP_CELLS = 16, 2**20
"""Bounds on the groups of nodes, by the memory of one matrix per group."""


@dataclass(frozen=True, eq=False)
class EdgeStatistics:
    """Sums of one pass over the edges, by class; d is the valid degree of a node."""

    edges: Matrix
    """Valid edges from class to class."""
    neighbour_shares: Matrix
    """Sum over the nodes of a class of the fraction of their edges into a class."""
    squares: Matrix
    """Sum over the nodes of a class of their squared edges into a class, over d."""
    nodes: Vector
    nodes_with_edges: Vector
    """Nodes with a valid edge."""
    degree_squares: Vector
    """The sum of d squared."""
    num_loops: int
    directed: bool


@dataclass(frozen=True, eq=False)
class GroupedEdgeStatistics:
    """Edge statistics of random groups of nodes, which the bootstrap resamples."""

    matrices: Float[np.ndarray, "groups 3 ids ids"]
    vectors: Float[np.ndarray, "groups 4 ids"]
    num_valid_classes: int
    directed: bool

    def total(self) -> EdgeStatistics:
        return self.weighted(np.ones(len(self.vectors)))

    def weighted(self, weights: Float[np.ndarray, " groups"]) -> EdgeStatistics:
        """The statistics with a weight for each group."""
        matrices = np.tensordot(weights, self.matrices, 1)
        vectors = np.tensordot(weights, self.vectors, 1)
        valid = slice(self.num_valid_classes)
        return EdgeStatistics(
            edges=matrices[EDGES, valid, valid],
            neighbour_shares=matrices[SHARES, valid, valid],
            squares=matrices[SQUARES, valid, valid],
            nodes=vectors[NODES, valid],
            nodes_with_edges=vectors[NODES_WITH_EDGES, valid],
            degree_squares=vectors[DEGREE_SQUARES, valid],
            num_loops=int(vectors[LOOPS].sum()),
            directed=self.directed,
        )


def count_edges(
    view: GraphView,
    *,
    num_groups: int = 1,
    seed: int = 0,
    progress: Progress = NO_PROGRESS,
) -> GroupedEdgeStatistics:
    """Count edges by class in one pass, without a copy of the edges.

    With very many classes there are fewer groups, to bound the memory of the sums.
    """
    num_ids = view.graph.num_classes + 1
    max_groups = max(MIN_GROUPS, MAX_GROUP_CELLS // num_ids**2)
    num_groups = max(1, min(num_groups, view.num_nodes, max_groups))

    shapes = ((num_groups, 3, num_ids, num_ids), (num_groups, 4, num_ids))
    csr = (view.indptr, view.indices, view.class_ids)
    settings = (view.num_valid_classes, view.convention.loops, seed)

    def count(first: int, last: int) -> list[np.ndarray]:
        sums = [np.zeros(shape) for shape in shapes]
        _count(*csr, first, last, *settings, *sums)
        return sums

    matrices, vectors = (np.zeros(shape) for shape in shapes)
    progress.stage("counting edges", float(view.indptr[-1]), "edges")
    for sums in map_row_blocks(view.indptr, count, progress=progress):
        matrices += sums[0]
        vectors += sums[1]
    return GroupedEdgeStatistics(
        matrices, vectors, view.num_valid_classes, view.graph.directed
    )


@njit()
@no_type_check
def _count(
    indptr,
    indices,
    class_ids,
    first,
    last,
    num_valid,
    self_loop_weight,
    seed,
    matrices,
    vectors,
):
    class_counts = np.zeros(matrices.shape[-1], np.int64)
    for node in range(first, last):
        own, group = class_ids[node], _group(node, seed, len(vectors), len(class_ids))
        neighbours = indices[indptr[node] : indptr[node + 1]]
        degree = np.int64(0)
        for neighbour in neighbours:
            other, weight = class_ids[neighbour], 1
            if neighbour == node:
                weight = self_loop_weight
                vectors[group, LOOPS, own] += 1
            class_counts[other] += weight
            degree += weight * (other < num_valid)
        vectors[group, NODES, own] += 1
        vectors[group, NODES_WITH_EDGES, own] += degree > 0
        vectors[group, DEGREE_SQUARES, own] += degree * degree
        if len(class_counts) < 2 * len(neighbours):
            for other in range(len(class_counts)):
                _add(matrices[group, :, own], class_counts, other, degree)
        else:
            for neighbour in neighbours:
                other = np.int64(class_ids[neighbour])
                _add(matrices[group, :, own], class_counts, other, degree)


@njit()
@no_type_check
def _add(sums, class_counts, other, degree):
    count = class_counts[other]
    if count:
        share = count / max(degree, 1)
        sums[EDGES, other] += count
        sums[SHARES, other] += share
        sums[SQUARES, other] += share * count
        class_counts[other] = 0


@njit()
@no_type_check
def _group(node, seed, num_groups, num_nodes):
    """The group of a node, by a hash of its index and the seed."""
    if num_groups == 1 or num_groups == num_nodes:  # `in` is slow to compile
        return min(node, num_groups - 1)
    hashed = mix64(np.uint64(node) + np.uint64(seed) * STEP)
    return np.int64(hashed % np.uint64(num_groups))


def degree_histogram(
    view: GraphView,
) -> tuple[Int[np.ndarray, " degrees"], Int[np.ndarray, " degrees"]]:
    """The degrees that occur, and the number of nodes of each.

    Self-loops and unlabelled neighbours are included.
    """
    counts = np.bincount(np.diff(view.indptr))
    degrees = np.flatnonzero(counts)
    return degrees, counts[degrees]


BOOTSTRAP_GROUPS = 256
"""Groups of nodes that are resampled; a smaller graph has one group per node."""


MAX_RESAMPLES = 100_000


def bootstrap_interval(
    grouped: GroupedEdgeStatistics,
    function: Callable[[EdgeStatistics], float],
    num_resamples: int,
    seed: int = 0,
) -> tuple[float, float]:
    """The 95 % bootstrap confidence interval of a measure.

    Nodes with their out-edges are resampled with replacement, in random groups, so that
    all resamples share one pass over the edges.
    """
    rng = np.random.default_rng(seed)
    size = len(grouped.vectors)
    weights = rng.multinomial(size, np.full(size, 1 / size), num_resamples)
    values = np.array(
        [function(grouped.weighted(row)) for row in weights.astype(float)]
    )
    values = values[~np.isnan(values)]
    low, high = np.quantile(values, [0.025, 0.975]) if len(values) else (np.nan, np.nan)
    return float(low), float(high)
