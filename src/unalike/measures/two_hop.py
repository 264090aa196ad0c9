"""Two-hop node homophily and the directed ones (A^T, A A^T, A^T A)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import no_type_check

import numpy as np
from jaxtyping import Float, Int

from unalike.data.numba_utils import njit
from unalike.measures.edge_statistics import GraphView
from unalike.measures.one_hop import safe_divide
from unalike.parallel import ordered_map

# Node homophily along in-edges and along two steps that change direction.


Table = Int[np.ndarray, "nodes codes"]


def in_node_homophily(view: GraphView) -> float:
    """Node homophily over the nodes that point at a node: along the transpose of A.

    The mean over nodes u of sum_v S_uv [k_u = k_v] / sum_v S_uv with S = A^T, from 0 to
    1. Directed graphs only; S = A is node homophily (Rossi et al. 2023,
    arXiv:2305.10498).
    """
    if not view.graph.directed:
        return math.nan
    incoming = _in_class_counts(view)
    every = incoming[:, : view.num_valid_classes].sum(1)
    return _mean_share(view, incoming[np.arange(len(every)), view.class_ids], every)


def shared_target_homophily(view: GraphView) -> float:
    """Node homophily among nodes that point at the same nodes: along A A^T.

    As `in_node_homophily`, with S_uv the number of nodes that u and v both point at and
    no node its own neighbour (Rossi et al. 2023, arXiv:2305.10498). No n x n matrix is
    made.
    """
    if not view.graph.directed:
        return math.nan
    same, every = np.zeros((2, view.num_nodes), np.int64)
    _shared_target_counts(
        *_rows(view), _in_class_counts(view), view.num_valid_classes, same, every
    )
    return _mean_share(view, same, every)


def shared_source_homophily(view: GraphView) -> float:
    """Node homophily among nodes that the same nodes point at: along A^T A.

    As `in_node_homophily`, with S_uv the number of nodes that point at both u and v and
    no node its own neighbour (Rossi et al. 2023, arXiv:2305.10498). No n x n matrix is
    made.
    """
    if not view.graph.directed:
        return math.nan
    same, every = np.zeros((2, view.num_nodes), np.int64)
    _shared_source_counts(
        *_rows(view), view.graph.num_classes + 1, view.num_valid_classes, same, every
    )
    return _mean_share(view, same, every)


def _rows(view: GraphView) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    return view.starts, view.columns, view.class_ids, view.convention.loops


def _in_class_counts(view: GraphView) -> Table:
    table = np.zeros((view.num_nodes, view.graph.num_classes + 1), np.int32)
    _count_in_neighbours(*_rows(view), table)
    return table


def _mean_share(
    view: GraphView, same: Int[np.ndarray, " nodes"], every: Int[np.ndarray, " nodes"]
) -> float:
    usable = view.is_valid & (every > 0)
    shares: Float[np.ndarray, " usable"] = same[usable] / every[usable]
    return safe_divide(shares.sum(), usable.sum())


@njit()
@no_type_check
def _count_in_neighbours(starts, columns, codes, loops, table):
    for node in range(len(codes)):
        for column in columns[starts[node] : starts[node + 1]]:
            table[column, codes[node]] += loops if column == node else 1


@njit()
@no_type_check
def _shared_target_counts(
    starts, columns, codes, loops, incoming, num_counted, same, every
):
    for node in range(len(codes)):
        for column in columns[starts[node] : starts[node + 1]]:
            weight = loops if column == node else 1
            back = weight * weight
            same[node] += weight * incoming[column, codes[node]] - back
            every[node] += weight * incoming[column, :num_counted].sum() - back


@njit()
@no_type_check
def _shared_source_counts(
    starts, columns, codes, loops, num_codes, num_counted, same, every
):
    outgoing = np.zeros(num_codes, np.int64)
    for node in range(len(codes)):
        row = columns[starts[node] : starts[node + 1]]
        outgoing[:] = 0
        for column in row:
            outgoing[codes[column]] += loops if column == node else 1
        counted = outgoing[:num_counted].sum()
        for column in row:
            weight = loops if column == node else 1
            back = weight * weight
            same[column] += weight * outgoing[codes[column]] - back
            every[column] += weight * counted - back


# Estimate: a mean over a sample, and how far off it may be.


@dataclass(frozen=True)
class Estimate:
    """A mean, the standard deviation of one draw, and the mean's standard error."""

    value: float
    std: float
    standard_error: float

    @classmethod
    def from_sample(
        cls, draws: Float[np.ndarray, " draws"], *, whole: int, drawn: int
    ) -> Estimate:
        """The mean of draws without replacement; without error if all are drawn."""
        if not len(draws):
            return cls(math.nan, math.nan, math.nan)
        deviation = float(draws.std(ddof=1)) if len(draws) > 1 else 0.0
        left = math.sqrt(1 - drawn / whole)
        error = deviation / math.sqrt(len(draws)) * left
        return cls(float(draws.mean()), deviation, error)


# Two-hop node homophily: like node homophily, one step further out.


MAX_EXACT_NODES = 10_000
"""Graphs of at most so many nodes are measured whole."""
SAMPLE_SIZE = 2_000
"""Nodes that are looked at in larger graphs."""


def two_hop_node_homophily(view: GraphView) -> Estimate:
    """The share of like nodes among those exactly two steps away, averaged over nodes.

    From 0 to 1 (Lim et al. 2021, arXiv:2110.14446). In large graphs the mean is over a
    random sample of nodes, whose two-hop neighbours are found in the whole graph.
    Unlabelled nodes may lie on the way. Nodes without two-hop neighbours are left out.
    """
    ids = np.flatnonzero(view.is_valid)
    whole = len(ids)
    if whole > MAX_EXACT_NODES:
        ids = np.random.default_rng(0).choice(ids, SAMPLE_SIZE, replace=False)
    parts = np.array_split(np.sort(ids), 16)
    shares = np.concatenate(list(ordered_map(lambda part: _shares(view, part), parts)))
    shares = shares[~np.isnan(shares)]
    return Estimate.from_sample(shares, whole=whole, drawn=len(ids))


def _shares(view: GraphView, ids: Int[np.ndarray, " ids"]) -> Float[np.ndarray, " ids"]:
    shares = np.full(len(ids), math.nan)
    _two_hop_shares(
        view.starts, view.columns, view.class_ids, view.num_valid_classes, ids, shares
    )
    return shares


@njit()
@no_type_check
def _two_hop_shares(starts, columns, codes, num_counted, ids, shares):
    met_by = np.empty(len(codes), np.int32)
    for node in range(len(codes)):
        met_by[node] = -1
    for place, node in enumerate(ids):
        near = columns[starts[node] : starts[node + 1]]
        met_by[node] = place
        for column in near:
            met_by[column] = place
        like = counted = 0
        for middle in near:
            for far in columns[starts[middle] : starts[middle + 1]]:
                if met_by[far] != place:
                    met_by[far] = place
                    counted += codes[far] < num_counted
                    like += codes[far] == codes[node]
        if counted:
            shares[place] = like / counted
