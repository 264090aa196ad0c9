"""Aggregation homophily and feature similarity over edges."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, no_type_check

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Features
from unalike.data.numba_utils import njit
from unalike.measures.edge_statistics import GraphView, map_row_blocks
from unalike.measures.one_hop import safe_divide

# Aggregation homophily: does averaging over neighbours keep classes apart?


def aggregation_homophily(view: GraphView) -> float:
    """The share of nodes that, after averaging, resemble their own class the most.

    With r_u the class shares of u and its neighbours together, a node v counts if the
    mean of r_u * r_v over its own class is at least that over all other nodes. Means
    commute with products, so that the mean r of each class is all that is kept. From 0
    to 1; above 1/2 averaging helps (Luan et al. 2022, arXiv:2210.07606).
    """
    codes = view.graph.num_classes + 1
    rows = (view.starts, view.columns, view.class_ids, view.num_valid_classes)
    settings = (*rows, view.convention.loops)

    def add(first: int, last: int) -> np.ndarray:
        sums = np.zeros((codes, codes))
        _sum_aggregated(*settings, first, last, sums)
        return sums

    sums = sum(map_row_blocks(view.starts, add), np.zeros((codes, codes)))
    nodes = np.bincount(view.class_ids[view.is_valid], minlength=codes)
    own = sums / nodes.clip(min=1)[:, None]
    others = (sums.sum(0) - sums) / (nodes.sum() - nodes).clip(min=1)[:, None]

    def count(first: int, last: int) -> int:
        return _count_nearest(*settings, first, last, own - others)

    if (nodes > 0).sum() < 2:
        return math.nan
    return safe_divide(sum(map_row_blocks(view.starts, count)), nodes.sum())


@njit()
@no_type_check
def _sum_aggregated(starts, columns, codes, num_counted, loops, first, last, sums):
    for node in range(first, last):
        own = codes[node]
        if own >= num_counted:
            continue
        size = 1
        for column in columns[starts[node] : starts[node + 1]]:
            weight = loops if column == node else 1
            size += weight * (codes[column] < num_counted)
        sums[own, own] += 1 / size
        for column in columns[starts[node] : starts[node + 1]]:
            weight = loops if column == node else 1
            if codes[column] < num_counted:
                sums[own, codes[column]] += weight / size


@njit()
@no_type_check
def _count_nearest(starts, columns, codes, num_counted, loops, first, last, lead):
    # Sums that ought to be equal differ in their last digits; equal ones count.
    slack, count = 1e-9, 0
    for node in range(first, last):
        own = codes[node]
        if own >= num_counted:
            continue
        size, ahead = 1, lead[own, own]
        for column in columns[starts[node] : starts[node + 1]]:
            weight = loops if column == node else 1
            if codes[column] < num_counted:
                size += weight
                ahead += weight * lead[own, codes[column]]
        count += ahead >= -slack * size
    return count


# Generalised edge homophily: how alike are the features of neighbours?


def generalised_edge_homophily(view: GraphView) -> float:
    """The cosine between the features of the two ends of an edge, averaged over edges.

    sum over (u, v) in E of cos(x_u, x_v) / |E|, from -1 to 1, and from 0 where features
    are not negative. Needs no label; the cosine with a row of zeros is 0 (Jin et al.
    2022, arXiv:2206.13953).
    """
    kernel, arrays = _feature_kernel(view.graph.features)

    def add(first: int, last: int) -> tuple[float, float]:
        loops = view.convention.loops
        return kernel(view.starts, view.columns, first, last, loops, *arrays)

    if not view.graph.num_features:
        return safe_divide(0, 0)
    likeness, edges = np.sum(list(map_row_blocks(view.starts, add)), axis=0)
    return safe_divide(likeness, edges)


def _feature_kernel(features: Features) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    if not isinstance(features, Adjacency):
        dense = features.cpu()
        dense = (
            dense if dense.dtype in (torch.float32, torch.float64) else dense.float()
        )
        norms = torch.linalg.vector_norm(dense, dim=1)
        return _dense, (dense.numpy(), _inverse(norms))
    rows = features.to("cpu")
    values = torch.ones(rows.nnz) if rows.values is None else rows.values
    squares = torch.zeros(rows.num_rows).index_add(0, rows.row_indices, values**2)
    arrays = (rows.indptr.numpy(), rows.indices.numpy(), values.numpy(), rows.num_cols)
    return _sparse, (*arrays, _inverse(squares.sqrt()))


def _inverse(norms: Float[Tensor, " nodes"]) -> Float[np.ndarray, " nodes"]:
    return torch.where(norms > 0, 1 / norms, 0).double().numpy()


@njit(fastmath={"reassoc", "contract"})
@no_type_check
def _dense(starts, columns, first, last, loops, features, inverse):
    likeness = edges = 0.0
    for node in range(first, last):
        for column in columns[starts[node] : starts[node + 1]]:
            weight = loops if column == node else 1
            product = 0.0
            for place in range(features.shape[1]):
                product += features[node, place] * features[column, place]
            likeness += weight * product * inverse[node] * inverse[column]
            edges += weight
    return likeness, edges


@njit()
@no_type_check
def _sparse(starts, columns, first, last, loops, heads, places, values, width, inverse):
    likeness = edges = 0.0
    own = np.zeros(width)
    for node in range(first, last):
        mine = slice(heads[node], heads[node + 1])
        own[places[mine]] = values[mine]
        for column in columns[starts[node] : starts[node + 1]]:
            weight = loops if column == node else 1
            product = 0.0
            for entry in range(heads[column], heads[column + 1]):
                product += own[places[entry]] * values[entry]
            likeness += weight * product * inverse[node] * inverse[column]
            edges += weight
        own[places[mine]] = 0
    return likeness, edges
