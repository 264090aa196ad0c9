"""Convert X, y, class_weight and validation to graphs, ids and label tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse
import torch
from jaxtyping import Int
from sklearn.utils import check_array, column_or_1d
from torch import Tensor

from unalike.data.adjacency import Adjacency, Ids
from unalike.data.graph import Graph, is_missing
from unalike.data.split import stratified_holdout
from unalike.data.store import StoredGraph, open_graph
from unalike.data.task import CLASS_WEIGHTS, ClassWeights
from unalike.errors import InputError, first_line
from unalike.inference.new_nodes import AnyFeatures, as_feature_matrix, check_finite

ClassWeight: TypeAlias = Mapping[Any, float | int] | str | None
UNLABELLED = -1
"""The label of nodes without a class, as in scikit-learn."""

CONVERTERS: dict[str, Callable[[Any], Graph]] = {
    "networkx": Graph.from_networkx,
    "torch_geometric": Graph.from_pyg,
}
"""Converters of graphs by package name; the packages are not imported."""


def as_stored(X: Any) -> StoredGraph | None:
    """A stored graph, or the one in a folder; None for anything else."""
    if isinstance(X, StoredGraph):
        return X
    return open_graph(X) if isinstance(X, str | Path) else None


def as_graph(X: Any, features: AnyFeatures | None = None) -> Graph:
    """A graph from a `Graph`, PyTorch Geometric, networkx, or a matrix of rows.

    A matrix, dense or sparse, has a row for each node and a column for each possible
    neighbour; it is square where these are the same nodes.
    """
    package = type(X).__module__.partition(".")[0]
    if isinstance(X, Graph):
        graph = X
    elif package in CONVERTERS:
        graph = CONVERTERS[package](X)
    else:
        rows = as_rows(X)
        square = rows.num_rows == rows.num_cols
        graph = Graph.build(rows, directed=not (square and rows.is_symmetric))
    if features is not None:
        matrix = as_feature_matrix(features)
        if matrix.shape[0] != graph.num_nodes:
            raise InputError(
                f"There are features of {matrix.shape[0]} nodes, and rows of "
                f"{graph.num_nodes}."
            )
        graph = replace(graph, features=matrix)
    check_finite(graph.features)
    return graph


def as_rows(X: Any) -> Adjacency:
    """Sparse rows from a dense or sparse matrix."""
    if isinstance(X, Adjacency):
        return X
    matrix = X if scipy.sparse.issparse(X) else np.asarray(X)
    if matrix.ndim != 2:
        raise InputError(
            f"Rows of a graph have two dimensions; these have {matrix.ndim}. "
            "Reshape your data, or pass NodeClassifier(graph=...) to name nodes."
        )
    try:  # complex numbers, no rows, no columns, NaN and infinity
        rows = check_array(matrix, accept_sparse="csr", dtype=np.float32)
    except ValueError as error:
        reason = first_line(error)
        raise InputError(
            f"{reason}; a row for each node has real weights of edges."
        ) from None
    return Adjacency.from_scipy(scipy.sparse.csr_array(rows))


def as_ids(X: Any, num_nodes: int) -> Ids:
    """Node ids from a list or from a matrix of one column."""
    ids = np.asarray(X)
    if ids.ndim == 2 and ids.shape[1] == 1:
        ids = ids[:, 0]
    if ids.ndim != 1 or not len(ids) or not np.issubdtype(ids.dtype, np.number):
        raise InputError("With a graph of its own, X holds the number of each node.")
    integers = ids.astype(np.int64)
    wrong = (integers != ids) | (integers < 0) | (integers >= num_nodes)
    if wrong.any():
        raise InputError(
            f"There is no node {ids[wrong][0]}; they run from 0 to {num_nodes - 1}."
        )
    return torch.from_numpy(integers)


def encode_labels(
    y: Any, unlabelled: Any = UNLABELLED
) -> tuple[Int[Tensor, " nodes"], np.ndarray]:
    """Class numbers of nodes, -1 for None, NaN and `unlabelled`, and the classes."""
    y = column_or_1d(y, warn=True)
    labelled = ~_is_missing(y, unlabelled)
    values = y[labelled]
    if values.dtype.kind == "f":
        _check_integral(values)
    elif values.dtype.kind == "O":
        values = np.array(values.tolist())
    classes, codes = np.unique(values, return_inverse=True)
    if len(classes) < 2:
        raise InputError(f"There is {len(classes)} class in the labels; 2 are needed.")
    labels = torch.full((len(y),), UNLABELLED)
    labels[torch.from_numpy(labelled)] = torch.from_numpy(codes)
    return labels, classes


def lookup_labels(y: Any, classes: np.ndarray) -> Int[Tensor, " nodes"]:
    """The index of each label among sorted classes, -1 for other labels."""
    values = np.asarray(y)
    if values.dtype.kind == "O":
        values = np.array(values.tolist())
    codes = np.searchsorted(classes, values).clip(max=len(classes) - 1)
    return torch.from_numpy(np.where(classes[codes] == values, codes, UNLABELLED))


def train_valid_ids(
    labels: Int[Tensor, " nodes"], validation: Any, seed: int
) -> tuple[Ids, Ids]:
    """Train and validation ids: a stratified fraction, or the given validation ids.

    Without validation nodes the train nodes choose the epoch.
    """
    if not isinstance(validation, float | int):
        valid = as_ids(validation, len(labels))
        if (labels[valid] < 0).any():
            raise InputError("The nodes named by validation need labels.")
        is_train = labels >= 0
        is_train[valid] = False
        return is_train.nonzero()[:, 0], valid
    if not 0 <= validation < 1:
        raise InputError(
            f"validation is {validation}; it must be at least 0 and below 1."
        )
    labelled = (labels >= 0).nonzero()[:, 0]
    generator = torch.Generator().manual_seed(seed)
    train, valid = stratified_holdout(labelled, labels, validation, generator)
    return train, valid if len(valid) else train


def class_weights(
    class_weight: ClassWeight, classes: np.ndarray, labels: Int[Tensor, " train"]
) -> ClassWeights | None:
    """The weight of each class in the loss; None if all weigh the same."""
    if class_weight is None:
        return None
    if isinstance(class_weight, Mapping):
        weights = [float(class_weight.get(name, 1)) for name in classes.tolist()]
        return torch.tensor(weights)
    if class_weight not in CLASS_WEIGHTS:
        known = ", ".join(f"'{name}'" for name in CLASS_WEIGHTS)
        raise InputError(
            f"class_weight is '{class_weight}'; it is None, {known} or a dict of "
            "weights."
        )
    return CLASS_WEIGHTS[class_weight](labels, len(classes))


def _is_missing(y: np.ndarray, unlabelled: Any) -> np.ndarray:
    if y.dtype.kind == "O":
        # A marker of numbers does not mark names: -1 is a name among text.
        marker = None if unlabelled == UNLABELLED else unlabelled
        return np.array([is_missing(label, marker) for label in y], bool)
    missing = np.isnan(y) if y.dtype.kind == "f" else np.zeros(len(y), bool)
    if unlabelled is None or isinstance(unlabelled, str) != (y.dtype.kind in "US"):
        return missing
    return missing | (y == unlabelled)


def _check_integral(values: np.ndarray) -> None:
    if not np.isfinite(values).all():
        raise InputError("Input y contains infinity or a value too large.")
    if (values != np.floor(values)).any():
        raise InputError("Unknown label type: continuous. Labels are names or numbers.")
