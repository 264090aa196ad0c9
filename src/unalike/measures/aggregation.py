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


def aggregation_homophily(view: GraphView) -> float:
    """The fraction of nodes that are most similar to their own class after averaging.

    With r_u the class fractions of u and its neighbours together, a node v counts if
    the mean of r_u * r_v over its own class is at least that over all other nodes.
    Means commute with products, so the mean r of each class is enough. From 0 to 1;
    above 1/2 averaging helps (Luan et al. 2022, arXiv:2210.07606).
    """
    num_ids = view.graph.num_classes + 1
    csr = (view.indptr, view.indices, view.class_ids)
    settings = (*csr, view.num_valid_classes, view.convention.loops)

    def aggregate(first: int, last: int) -> np.ndarray:
        sums = np.zeros((num_ids, num_ids))
        _sum_aggregated(*settings, first, last, sums)
        return sums

    sums = sum(map_row_blocks(view.indptr, aggregate), np.zeros((num_ids, num_ids)))
    num_nodes = np.bincount(view.class_ids[view.is_valid], minlength=num_ids)
    num_others = num_nodes.sum() - num_nodes
    within = sums / num_nodes.clip(min=1)[:, None]
    between = (sums.sum(0) - sums) / num_others.clip(min=1)[:, None]

    def count(first: int, last: int) -> int:
        return _count_nearest(*settings, first, last, within - between)

    if (num_nodes > 0).sum() < 2:
        return math.nan
    return safe_divide(sum(map_row_blocks(view.indptr, count)), num_nodes.sum())


def generalised_edge_homophily(view: GraphView) -> float:
    """The mean cosine similarity of the features of the two nodes of an edge.

    sum over (u, v) in E of cos(x_u, x_v) / |E|, from -1 to 1, and from 0 if features
    are not negative. Needs no label; the cosine with a row of zeros is 0 (Jin et al.
    2022, arXiv:2206.13953).
    """
    kernel, arrays = _feature_kernel(view.graph.features)

    def add(first: int, last: int) -> tuple[float, float]:
        weight = view.convention.loops
        return kernel(view.indptr, view.indices, first, last, weight, *arrays)

    if not view.graph.num_features:
        return safe_divide(0, 0)
    similarity, edges = np.sum(list(map_row_blocks(view.indptr, add)), axis=0)
    return safe_divide(similarity, edges)


def _feature_kernel(features: Features) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The loop for dense or sparse features, and its arrays."""
    if not isinstance(features, Adjacency):
        dense = features.cpu()
        if dense.dtype not in (torch.float32, torch.float64):
            dense = dense.float()
        norms = torch.linalg.vector_norm(dense, dim=1)
        return _dense, (dense.numpy(), _inverse_norms(norms))
    rows = features.to("cpu")
    values = torch.ones(rows.nnz) if rows.values is None else rows.values
    squares = torch.zeros(rows.num_rows).index_add(0, rows.row_indices, values**2)
    csr = (rows.indptr.numpy(), rows.indices.numpy(), values.numpy(), rows.num_cols)
    return _sparse, (*csr, _inverse_norms(squares.sqrt()))


def _inverse_norms(norms: Float[Tensor, " nodes"]) -> Float[np.ndarray, " nodes"]:
    return torch.where(norms > 0, 1 / norms, 0).double().numpy()


@njit()
@no_type_check
def _sum_aggregated(
    indptr, indices, class_ids, num_valid, self_loop_weight, first, last, sums
):
    for node in range(first, last):
        own = class_ids[node]
        if own >= num_valid:
            continue
        size = 1
        for neighbour in indices[indptr[node] : indptr[node + 1]]:
            weight = self_loop_weight if neighbour == node else 1
            size += weight * (class_ids[neighbour] < num_valid)
        sums[own, own] += 1 / size
        for neighbour in indices[indptr[node] : indptr[node + 1]]:
            weight = self_loop_weight if neighbour == node else 1
            if class_ids[neighbour] < num_valid:
                sums[own, class_ids[neighbour]] += weight / size


@njit()
@no_type_check
def _count_nearest(
    indptr, indices, class_ids, num_valid, self_loop_weight, first, last, margin
):
    # Ties count, and rounding errors must not decide them.
    tolerance, count = 1e-9, 0
    for node in range(first, last):
        own = class_ids[node]
        if own >= num_valid:
            continue
        size, total = 1, margin[own, own]
        for neighbour in indices[indptr[node] : indptr[node + 1]]:
            weight = self_loop_weight if neighbour == node else 1
            if class_ids[neighbour] < num_valid:
                size += weight
                total += weight * margin[own, class_ids[neighbour]]
        count += total >= -tolerance * size
    return count


@njit(fastmath={"reassoc", "contract"})
@no_type_check
def _dense(indptr, indices, first, last, self_loop_weight, features, inverse_norms):
    similarity = edges = 0.0
    for node in range(first, last):
        for neighbour in indices[indptr[node] : indptr[node + 1]]:
            weight = self_loop_weight if neighbour == node else 1
            product = 0.0
            for column in range(features.shape[1]):
                product += features[node, column] * features[neighbour, column]
            cosine = product * inverse_norms[node] * inverse_norms[neighbour]
            similarity += weight * cosine
            edges += weight
    return similarity, edges


@njit()
@no_type_check
def _sparse(
    indptr,
    indices,
    first,
    last,
    self_loop_weight,
    feature_indptr,
    feature_indices,
    values,
    num_features,
    inverse_norms,
):
    similarity = edges = 0.0
    dense_row = np.zeros(num_features)
    for node in range(first, last):
        own = slice(feature_indptr[node], feature_indptr[node + 1])
        dense_row[feature_indices[own]] = values[own]
        for neighbour in indices[indptr[node] : indptr[node + 1]]:
            weight = self_loop_weight if neighbour == node else 1
            product = 0.0
            for entry in range(
                feature_indptr[neighbour], feature_indptr[neighbour + 1]
            ):
                product += dense_row[feature_indices[entry]] * values[entry]
            cosine = product * inverse_norms[node] * inverse_norms[neighbour]
            similarity += weight * cosine
            edges += weight
        dense_row[feature_indices[own]] = 0
    return similarity, edges
