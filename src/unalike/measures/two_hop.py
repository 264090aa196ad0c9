"""Two-hop node homophily, and node homophily along A^T, A A^T and A^T A."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import no_type_check

import numpy as np
from jaxtyping import Float, Int

from unalike.data.numba_utils import njit
from unalike.measures.edge_statistics import GraphView
from unalike.measures.one_hop import safe_divide
from unalike.parallel import parallel_map

MAX_EXACT_NODES = 10_000
"""Up to this many nodes, two-hop homophily is exact."""
SAMPLE_SIZE = 2_000
"""Sampled nodes of larger graphs."""
NUM_PARTS = 16
"""Parts of the nodes that threads work on."""


@dataclass(frozen=True)
class Estimate:
    """A mean, the standard deviation of one sample, and the mean's standard error."""

    value: float
    std: float
    standard_error: float

    @classmethod
    def from_sample(
        cls, values: Float[np.ndarray, " values"], *, population: int, sample_size: int
    ) -> Estimate:
        """The mean of a sample without replacement; exact if all are sampled."""
        if not len(values):
            return cls(math.nan, math.nan, math.nan)
        std = float(values.std(ddof=1)) if len(values) > 1 else 0.0
        correction = math.sqrt(1 - sample_size / population)
        error = std / math.sqrt(len(values)) * correction
        return cls(float(values.mean()), std, error)


def two_hop_node_homophily(view: GraphView) -> Estimate:
    """Node homophily over the nodes at distance exactly two.

    From 0 to 1 (Lim et al. 2021, arXiv:2110.14446). In large graphs the mean is over a
    random sample of nodes, whose two-hop neighbours are those in the full graph.
    Unlabelled nodes may be in between. Nodes without two-hop neighbours are excluded.
    """
    ids = np.flatnonzero(view.is_valid)
    population = len(ids)
    if population > MAX_EXACT_NODES:
        ids = np.random.default_rng(0).choice(ids, SAMPLE_SIZE, replace=False)
    csr = (view.indptr, view.indices, view.class_ids)

    def fractions(part: Int[np.ndarray, " part"]) -> Float[np.ndarray, " part"]:
        result = np.full(len(part), math.nan)
        _two_hop_fractions(*csr, view.num_valid_classes, part, result)
        return result

    parts = np.array_split(np.sort(ids), NUM_PARTS)
    values = np.concatenate(parallel_map(fractions, parts))
    values = values[~np.isnan(values)]
    return Estimate.from_sample(values, population=population, sample_size=len(ids))


def in_node_homophily(view: GraphView) -> float:
    """Node homophily over in-neighbours, along the transpose of A.

    The mean over nodes u of sum_v S_uv [k_u = k_v] / sum_v S_uv with S = A^T, from 0 to
    1. Directed graphs only; S = A is node homophily (Rossi et al. 2023,
    arXiv:2305.10498).
    """
    if not view.graph.directed:
        return math.nan
    counts = _in_class_counts(view)
    total = counts[:, : view.num_valid_classes].sum(1)
    return _mean_fraction(view, counts[np.arange(len(total)), view.class_ids], total)


def shared_target_homophily(view: GraphView) -> float:
    """Node homophily among nodes with common out-neighbours, along A A^T.

    As `in_node_homophily`, with S_uv the number of common out-neighbours of u and v and
    S_uu = 0 (Rossi et al. 2023, arXiv:2305.10498). No n x n matrix is made.
    """
    if not view.graph.directed:
        return math.nan
    same, total = np.zeros((2, view.num_nodes), np.int64)
    counts = _in_class_counts(view)
    _shared_target_counts(*_arrays(view), counts, view.num_valid_classes, same, total)
    return _mean_fraction(view, same, total)


def shared_source_homophily(view: GraphView) -> float:
    """Node homophily among nodes with common in-neighbours, along A^T A.

    As `in_node_homophily`, with S_uv the number of common in-neighbours of u and v and
    S_uu = 0 (Rossi et al. 2023, arXiv:2305.10498). No n x n matrix is made.
    """
    if not view.graph.directed:
        return math.nan
    same, total = np.zeros((2, view.num_nodes), np.int64)
    num_ids = view.graph.num_classes + 1
    _shared_source_counts(*_arrays(view), num_ids, view.num_valid_classes, same, total)
    return _mean_fraction(view, same, total)


def _arrays(view: GraphView) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    return view.indptr, view.indices, view.class_ids, view.convention.loops


def _in_class_counts(view: GraphView) -> Int[np.ndarray, "nodes ids"]:
    """The number of in-neighbours of each node in each class."""
    counts = np.zeros((view.num_nodes, view.graph.num_classes + 1), np.int32)
    _count_in_neighbours(*_arrays(view), counts)
    return counts


def _mean_fraction(
    view: GraphView, same: Int[np.ndarray, " nodes"], total: Int[np.ndarray, " nodes"]
) -> float:
    usable = view.is_valid & (total > 0)
    fractions: Float[np.ndarray, " usable"] = same[usable] / total[usable]
    return safe_divide(fractions.sum(), usable.sum())


@njit()
@no_type_check
def _two_hop_fractions(indptr, indices, class_ids, num_valid, ids, fractions):
    visited_by = np.empty(len(class_ids), np.int32)
    for node in range(len(class_ids)):
        visited_by[node] = -1
    for index, node in enumerate(ids):
        neighbours = indices[indptr[node] : indptr[node + 1]]
        visited_by[node] = index
        for neighbour in neighbours:
            visited_by[neighbour] = index
        same = total = 0
        for neighbour in neighbours:
            for far in indices[indptr[neighbour] : indptr[neighbour + 1]]:
                if visited_by[far] != index:
                    visited_by[far] = index
                    total += class_ids[far] < num_valid
                    same += class_ids[far] == class_ids[node]
        if total:
            fractions[index] = same / total


@njit()
@no_type_check
def _count_in_neighbours(indptr, indices, class_ids, self_loop_weight, counts):
    for node in range(len(class_ids)):
        for target in indices[indptr[node] : indptr[node + 1]]:
            weight = self_loop_weight if target == node else 1
            counts[target, class_ids[node]] += weight


@njit()
@no_type_check
def _shared_target_counts(
    indptr, indices, class_ids, self_loop_weight, in_counts, num_valid, same, total
):
    for node in range(len(class_ids)):
        for target in indices[indptr[node] : indptr[node + 1]]:
            weight = self_loop_weight if target == node else 1
            diagonal = weight * weight
            same[node] += weight * in_counts[target, class_ids[node]] - diagonal
            total[node] += weight * in_counts[target, :num_valid].sum() - diagonal


@njit()
@no_type_check
def _shared_source_counts(
    indptr, indices, class_ids, self_loop_weight, num_ids, num_valid, same, total
):
    out_counts = np.zeros(num_ids, np.int64)
    for node in range(len(class_ids)):
        targets = indices[indptr[node] : indptr[node + 1]]
        out_counts[:] = 0
        for target in targets:
            out_counts[class_ids[target]] += self_loop_weight if target == node else 1
        num_out = out_counts[:num_valid].sum()
        for target in targets:
            weight = self_loop_weight if target == node else 1
            diagonal = weight * weight
            same[target] += weight * out_counts[class_ids[target]] - diagonal
            total[target] += weight * num_out - diagonal
