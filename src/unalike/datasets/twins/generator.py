"""Random graphs of a degree-corrected block model with class preferences of nodes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from queue import SimpleQueue
from typing import no_type_check

import numpy as np

from unalike.data.csr import row_blocks
from unalike.data.numba_utils import (
    STEP,
    binary_search,
    build_alias_table,
    njit,
    sort_range,
    stream_seed,
    uniform,
    weighted_choice,
)
from unalike.errors import UserError
from unalike.parallel import num_threads, ordered_map
from unalike.progress import Progress

MIN_PREFERENCE = 1e-3
"""Minimum of a class preference, so that every target can be sampled."""
MIN_NODES_PER_DEGREE = 8
"""The maximum degree is the number of nodes divided by this."""
NUM_FITTING_ROUNDS = 5
"""Iterations of proportional fitting."""
BLOCK_EDGES = 2_000_000
"""Edges that a thread samples at a time."""
MAX_ATTEMPTS = 64
"""Samples of a duplicate target before the next free node is used."""


@dataclass(frozen=True)
class DegreeDistribution:
    """A log-normal body with a power tail: exp(spread * Z) / U ** (1 / (exponent - 1)).

    Z is normal and U uniform, so the density falls like degree ** -exponent.
    """

    exponent: float
    spread: float = 1.0

    def __post_init__(self) -> None:
        if not (self.exponent > 1 and self.spread >= 0):
            raise UserError(
                "A degree distribution needs an exponent above 1 and a spread of 0 or "
                f"more, not {self}."
            )

    def sample(
        self, rng: np.random.Generator, count: int, total: int, limit: int
    ) -> np.ndarray:
        """Sample `count` expected degrees that sum to `total`, none above the limit."""
        if total > limit * count / 2:
            raise UserError(f"{total} edges are too many for {count} nodes of a class.")
        weights = np.exp(self.spread * rng.standard_normal(count))
        weights *= (1 - rng.random(count)) ** (-1 / (self.exponent - 1))
        capped = np.zeros(count, bool)
        while True:
            remaining = total - limit * capped.sum()
            degrees = weights * (remaining / weights[~capped].sum())
            degrees[capped] = limit
            if not (degrees > limit).any():
                return degrees
            capped |= degrees > limit


@dataclass(frozen=True, eq=False)
class NodeParameters:
    """What is sampled for each node before there are edges."""

    classes: np.ndarray
    """The class of each node; unlabelled nodes are a class of their own."""
    degrees: np.ndarray
    """The out-degree of each node."""
    target_weights: np.ndarray
    """The weight of each node when a target is sampled within its class."""
    class_preferences: np.ndarray
    """The preference of each node for each class; the average of its class is 1."""

    def members(self, label: int) -> np.ndarray:
        return np.flatnonzero(self.classes == label)


def sample_nodes(
    class_sizes: np.ndarray,
    class_edges: np.ndarray,
    *,
    out_degrees: DegreeDistribution,
    in_degrees: DegreeDistribution | None,
    monophily: float,
    rng: np.random.Generator,
) -> NodeParameters:
    """Sample all nodes, given the sizes of classes and the edges between them."""
    num_classes = len(class_sizes)
    classes = rng.permutation(np.repeat(np.arange(num_classes), class_sizes))
    nodes = NodeParameters(
        classes,
        degrees=np.zeros(len(classes), np.int64),
        target_weights=np.zeros(len(classes)),
        class_preferences=np.ones((len(classes), num_classes), np.float32),
    )
    limit = max(len(classes) // MIN_NODES_PER_DEGREE, 1)
    for label, size in enumerate(class_sizes.tolist()):
        members = nodes.members(label)
        out_edges, in_edges = class_edges[label], class_edges[:, label]
        num_out, num_in = int(out_edges.sum()), int(in_edges.sum())
        expected = out_degrees.sample(rng, size, num_out, limit)
        nodes.degrees[members] = apportion(expected, num_out)
        if in_degrees is not None:
            expected = in_degrees.sample(rng, size, num_in, limit)
        nodes.target_weights[members] = expected
        nodes.class_preferences[members] = sample_preferences(
            rng, size, out_edges + in_edges, monophily
        )
    return nodes


def sample_preferences(
    rng: np.random.Generator, count: int, neighbour_counts: np.ndarray, monophily: float
) -> np.ndarray:
    """Sample class preferences for the nodes of a class.

    The neighbour distributions of nodes are Dirichlet around that of the class, b, with
    the concentration (1 - monophily) / monophily, so that the classes of two neighbours
    of a node have the correlation `monophily`; divided by b they are preferences, whose
    mean is 1.
    """
    if not monophily or not neighbour_counts.any():
        return np.ones((count, len(neighbour_counts)))
    base = neighbour_counts / neighbour_counts.sum()
    alpha = base * (1 - monophily) / monophily
    shares = rng.standard_gamma(alpha, (count, len(neighbour_counts)))
    shares /= np.maximum(shares.sum(1, keepdims=True), 1e-300)
    preferences = np.divide(shares, base, out=np.ones_like(shares), where=base > 0)
    return np.maximum(preferences, MIN_PREFERENCE)


def apportion(amounts: np.ndarray, total: int) -> np.ndarray:
    """Integers in proportion to the amounts, each rounded up or down, with a given sum.

    The cumulative sum is rounded instead of each amount (systematic rounding).
    """
    shares = np.cumsum(amounts) / max(np.sum(amounts), 1e-300)
    return np.diff(np.floor(shares * total + 0.5).astype(np.int64), prepend=0)


def sample_target_classes(
    nodes: NodeParameters, class_edges: np.ndarray, seed: int
) -> np.ndarray:
    """Sample the number of edges from each node to each class; sums are exact."""
    counts = np.zeros(nodes.class_preferences.shape, np.int32)
    limits = np.bincount(nodes.classes, minlength=len(class_edges)) // 2
    for label, totals in enumerate(class_edges):
        members = nodes.members(label)
        degrees = nodes.degrees[members]
        probabilities = fit_marginals(
            nodes.class_preferences[members] * totals, degrees, totals
        )
        allocate_edges(
            members, nodes.degrees, probabilities, totals, limits, seed, counts
        )
    return counts


def fit_marginals(
    weights: np.ndarray, degrees: np.ndarray, totals: np.ndarray
) -> np.ndarray:
    """Scale rows to sums of 1 and columns, over all edges, to the totals, in turn."""
    probabilities = weights.astype(np.float64)
    for _ in range(NUM_FITTING_ROUNDS):
        probabilities *= totals / np.maximum(degrees @ probabilities, 1e-300)
        probabilities /= np.maximum(probabilities.sum(1, keepdims=True), 1e-300)
    return probabilities


def alias_tables(
    nodes: NodeParameters,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Alias tables to sample a target within a class, one row for each source class.

    Positions run over the nodes ordered by class (the first array), class l from
    bounds[l] to bounds[l + 1]. The weight of node v for class k is its target weight
    times its preference.
    """
    num_classes = nodes.class_preferences.shape[1]
    members = np.argsort(nodes.classes, kind="stable").astype(np.int32)
    bounds = np.searchsorted(nodes.classes[members], np.arange(num_classes + 1))
    keep = np.empty((num_classes, len(members)), np.float32)
    other = np.empty((num_classes, len(members)), np.int32)
    for start, end in pairwise(bounds):
        ids = members[start:end]
        weights = nodes.target_weights[ids] * nodes.class_preferences[ids].T
        for label in range(num_classes):
            row = (label, slice(start, end))
            build_alias_table(weights[label], ids, keep[row], other[row])
    return members, bounds, keep, other


def sample_edges(
    nodes: NodeParameters,
    counts: np.ndarray,
    indices: np.ndarray,
    *,
    undirected: bool,
    seed: int,
    progress: Progress,
) -> np.ndarray:
    """Sample the targets of every row, sorted and distinct, into `indices`.

    Returns indptr. For an undirected graph each edge is sampled once: a row avoids the
    earlier rows that contain it, so one thread works through the rows in order.
    """
    threads = 1 if undirected else num_threads()
    indptr = np.concatenate([[0], np.cumsum(nodes.degrees)])
    tables = alias_tables(nodes)
    buffers: SimpleQueue[np.ndarray] = SimpleQueue()
    for _ in range(threads):
        buffers.put(np.full(len(nodes.classes), -1, np.int32))

    def sample(block: tuple[int, int]) -> int:
        last_row_of = buffers.get()
        rows = (nodes.classes, counts, indptr)
        sample_rows(block, rows, tables, undirected, seed, last_row_of, indices)
        buffers.put(last_row_of)
        return int(indptr[block[1]] - indptr[block[0]])

    progress.stage("Sampling edges", len(indices) / 1e6, "million")
    for nnz in ordered_map(sample, row_blocks(indptr, BLOCK_EDGES), threads):
        progress.advance(nnz / 1e6)
    return indptr


@njit()
@no_type_check
def allocate_edges(rows, degrees, probabilities, totals, limits, seed, counts):
    """Sample the target class of every edge of a class, without replacement.

    Row u samples class l with the probability p[u, l] * remaining[l] / expected[l]: the
    edges that remain over those that this row and the later ones are expected to take.
    So the counts follow the probabilities, and their sums are the totals.
    """
    # Loops instead of array expressions, which take seconds to compile.
    remaining, num_classes = totals.copy(), len(totals)
    expected, weights = np.zeros(num_classes), np.zeros(num_classes)
    for index in range(len(rows)):
        _add_scaled(expected, probabilities[index], degrees[rows[index]])
    for index in range(len(rows)):
        row = rows[index]
        for label in range(num_classes):
            weight = probabilities[index, label] * remaining[label]
            weights[label] = weight / max(expected[label], 1e-9)
        state = stream_seed(seed, row)
        for _ in range(degrees[row]):
            state += STEP
            label = weighted_choice(weights, uniform(state))
            if label < 0:
                # All classes with a weight are used up: take the largest remainder.
                label = _largest_remainder(counts[row], limits, remaining)
            counts[row, label] += 1
            remaining[label] -= 1
            if remaining[label] <= 0 or counts[row, label] >= limits[label]:
                weights[label] = 0
        _add_scaled(expected, probabilities[index], -degrees[row])


@njit()
@no_type_check
def _add_scaled(sums, values, factor):
    for label in range(len(sums)):
        sums[label] += factor * values[label]


@njit()
@no_type_check
def _largest_remainder(counts, limits, remaining):
    """The class with the most remaining edges among those below their limit."""
    best, largest = 0, -(2**62)
    for label in range(len(remaining)):
        if counts[label] < limits[label] and remaining[label] > largest:
            best, largest = label, remaining[label]
    return best


@njit()
@no_type_check
def sample_rows(block, rows, tables, undirected, seed, last_row_of, indices):
    """Sample the targets of a block of rows; last_row_of[v] is the last row with v."""
    # Of the type of the weights in an import, so that the sort is compiled once.
    no_companion = np.empty(0, np.float32)
    classes, counts, indptr = rows
    members, bounds, keep, other = tables
    for row in range(block[0], block[1]):
        last_row_of[row] = row
        state, end, own = stream_seed(seed, row), indptr[row], classes[row]
        for label in range(counts.shape[1]):
            start, size = bounds[label], bounds[label + 1] - bounds[label]
            for _ in range(counts[row, label]):
                attempts, position, target = 0, 0, np.int64(row)
                while is_duplicate(
                    row, target, last_row_of, undirected, indptr, indices
                ):
                    if attempts < MAX_ATTEMPTS:
                        state += STEP
                        sample = uniform(state) * size
                        position = start + int(sample)
                        is_kept = sample - int(sample) < keep[own, position]
                        chosen = members[position] if is_kept else other[own, position]
                        target = np.int64(chosen)
                    else:
                        position = (position + 1) % len(members)
                        target = np.int64(members[position])
                    attempts += 1
                last_row_of[target] = row
                indices[end] = target
                end += 1
        sort_range(indices, no_companion, indptr[row], end)


@njit()
@no_type_check
def is_duplicate(row, target, last_row_of, undirected, indptr, indices):
    """Whether the row has the target, or the target's row has it if undirected."""
    if last_row_of[target] == row:
        return True
    if not undirected or target > row:
        return False
    return binary_search(indices, indptr[target], indptr[target + 1], row) >= 0
