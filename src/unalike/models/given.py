"""Given: graphs and rows as people hold them, turned into ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse
import torch

from unalike.adjacency import Adjacency, Ids
from unalike.errors import InputError
from unalike.graph import Graph
from unalike.models.new_features import AnyFeatures, check_finite, readable

FOREIGN: dict[str, Callable[[Any], Graph]] = {
    "networkx": Graph.from_networkx,
    "torch_geometric": Graph.from_pyg,
}
"""Packages that are not imported here, and how their graphs are read."""


def as_graph(given: Any, features: AnyFeatures | None = None) -> Graph:
    """A graph from ours, PyTorch Geometric, networkx, or a matrix of rows.

    A matrix, dense or sparse, has a row for each node and a column for each that may
    be its neighbour; mostly these are the same nodes and it is square.
    """
    package = type(given).__module__.partition(".")[0]
    if isinstance(given, Graph):
        graph = given
    elif package in FOREIGN:
        graph = FOREIGN[package](given)
    else:
        rows = as_rows(given)
        square = rows.num_rows == rows.width
        graph = Graph.build(rows, directed=not (square and rows.is_symmetric))
    if features is not None:
        told = readable(features)
        if told.shape[0] != graph.num_nodes:
            raise InputError(
                f"There are features of {told.shape[0]} nodes, and rows of "
                f"{graph.num_nodes}."
            )
        graph = replace(graph, features=told)
    check_finite(graph.features)
    return graph


def as_rows(given: Any) -> Adjacency:
    """Sparse rows from a matrix of numbers."""
    if isinstance(given, Adjacency):
        return given
    matrix = given if scipy.sparse.issparse(given) else np.asarray(given)
    if np.iscomplexobj(matrix):
        raise InputError("Complex data not supported: weights of edges are real.")
    if matrix.ndim != 2:
        raise InputError(
            f"Rows of a graph have two dimensions; these have {matrix.ndim}. "
            "Reshape your data, or pass NodeClassifier(graph=...) to name nodes."
        )
    for axis, what in enumerate(("sample(s)", "feature(s)")):
        if not matrix.shape[axis]:
            raise InputError(
                f"Found array with 0 {what} (shape={matrix.shape}) while a minimum of "
                "1 is required: rows of nodes, columns of neighbours."
            )
    rows = scipy.sparse.csr_array(matrix.astype(np.float32))
    if not np.isfinite(rows.data).all():
        raise InputError("Input contains NaN or infinity; weights of edges are finite.")
    return Adjacency.from_scipy(rows)


def as_ids(given: Any, num_nodes: int) -> Ids:
    """Numbers of nodes, from one column or from a plain list."""
    ids = np.asarray(given)
    if ids.ndim == 2 and ids.shape[1] == 1:
        ids = ids[:, 0]
    if ids.ndim != 1 or not len(ids) or not np.issubdtype(ids.dtype, np.number):
        raise InputError("With a graph of its own, X holds the number of each node.")
    whole = ids.astype(np.int64)
    wrong = (whole != ids) | (whole < 0) | (whole >= num_nodes)
    if wrong.any():
        raise InputError(
            f"There is no node {ids[wrong][0]}; they run from 0 to {num_nodes - 1}."
        )
    return torch.from_numpy(whole)
