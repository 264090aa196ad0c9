"""Node homophily along in-edges and along two steps that change direction."""

from __future__ import annotations

import math
from typing import no_type_check

import numpy as np
from jaxtyping import Float, Int

from unalike.kernels.compiled import compiled
from unalike.measures.ratio import ratio
from unalike.measures.view import View

Table = Int[np.ndarray, "nodes codes"]


def in_node_homophily(view: View) -> float:
    """Node homophily over the nodes that point at a node: along the transpose of A.

    The mean over nodes u of sum_v S_uv [k_u = k_v] / sum_v S_uv with S = A^T, from 0 to
    1. Directed graphs only; S = A is node homophily (Rossi et al. 2023,
    arXiv:2305.10498).
    """
    if not view.graph.directed:
        return math.nan
    incoming = _incoming(view)
    every = incoming[:, : view.num_counted].sum(1)
    return _mean_share(view, incoming[np.arange(len(every)), view.codes], every)


def shared_target_homophily(view: View) -> float:
    """Node homophily among nodes that point at the same nodes: along A A^T.

    As `in_node_homophily`, with S_uv the number of nodes that u and v both point at and
    no node its own neighbour (Rossi et al. 2023, arXiv:2305.10498). No n x n matrix is
    made.
    """
    if not view.graph.directed:
        return math.nan
    same, every = np.zeros((2, view.num_nodes), np.int64)
    _gather(*_rows(view), _incoming(view), view.num_counted, same, every)
    return _mean_share(view, same, every)


def shared_source_homophily(view: View) -> float:
    """Node homophily among nodes that the same nodes point at: along A^T A.

    As `in_node_homophily`, with S_uv the number of nodes that point at both u and v and
    no node its own neighbour (Rossi et al. 2023, arXiv:2305.10498). No n x n matrix is
    made.
    """
    if not view.graph.directed:
        return math.nan
    same, every = np.zeros((2, view.num_nodes), np.int64)
    _spread(*_rows(view), view.graph.num_classes + 1, view.num_counted, same, every)
    return _mean_share(view, same, every)


def _rows(view: View) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    return view.starts, view.columns, view.codes, view.convention.loops


def _incoming(view: View) -> Table:
    table = np.zeros((view.num_nodes, view.graph.num_classes + 1), np.int32)
    _receive(*_rows(view), table)
    return table


def _mean_share(
    view: View, same: Int[np.ndarray, " nodes"], every: Int[np.ndarray, " nodes"]
) -> float:
    usable = view.is_counted & (every > 0)
    shares: Float[np.ndarray, " usable"] = same[usable] / every[usable]
    return ratio(shares.sum(), usable.sum())


@compiled()
@no_type_check
def _receive(starts, columns, codes, loops, table):
    for node in range(len(codes)):
        for column in columns[starts[node] : starts[node + 1]]:
            table[column, codes[node]] += loops if column == node else 1


@compiled()
@no_type_check
def _gather(starts, columns, codes, loops, incoming, num_counted, same, every):
    for node in range(len(codes)):
        for column in columns[starts[node] : starts[node + 1]]:
            weight = loops if column == node else 1
            back = weight * weight
            same[node] += weight * incoming[column, codes[node]] - back
            every[node] += weight * incoming[column, :num_counted].sum() - back


@compiled()
@no_type_check
def _spread(starts, columns, codes, loops, num_codes, num_counted, same, every):
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
