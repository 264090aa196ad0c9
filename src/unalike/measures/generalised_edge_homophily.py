"""Generalised edge homophily: how alike are the features of neighbours?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, no_type_check

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from unalike.adjacency import Adjacency
from unalike.features import Features
from unalike.kernels.compiled import compiled
from unalike.measures.blocks import over_blocks
from unalike.measures.ratio import ratio
from unalike.measures.view import View


def generalised_edge_homophily(view: View) -> float:
    """The cosine between the features of the two ends of an edge, averaged over edges.

    sum over (u, v) in E of cos(x_u, x_v) / |E|, from -1 to 1, and from 0 where features
    are not negative. Needs no label; the cosine with a row of zeros is 0 (Jin et al.
    2022, arXiv:2206.13953).
    """
    kernel, arrays = _reader(view.graph.features)

    def add(first: int, last: int) -> tuple[float, float]:
        loops = view.convention.loops
        return kernel(view.starts, view.columns, first, last, loops, *arrays)

    if not view.graph.num_features:
        return ratio(0, 0)
    likeness, edges = np.sum(list(over_blocks(view.starts, add)), axis=0)
    return ratio(likeness, edges)


def _reader(features: Features) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    if not isinstance(features, Adjacency):
        dense = features.cpu()
        dense = (
            dense if dense.dtype in (torch.float32, torch.float64) else dense.float()
        )
        norms = torch.linalg.vector_norm(dense, dim=1)
        return _dense, (dense.numpy(), _inverse(norms))
    rows = features.to("cpu")
    values = torch.ones(rows.num_entries) if rows.values is None else rows.values
    squares = torch.zeros(rows.num_rows).index_add(0, rows.row_of_entry, values**2)
    arrays = (rows.starts.numpy(), rows.columns.numpy(), values.numpy(), rows.width)
    return _sparse, (*arrays, _inverse(squares.sqrt()))


def _inverse(norms: Float[Tensor, " nodes"]) -> Float[np.ndarray, " nodes"]:
    return torch.where(norms > 0, 1 / norms, 0).double().numpy()


@compiled(fastmath={"reassoc", "contract"})
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


@compiled()
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
