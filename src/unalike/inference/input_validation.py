"""Turn X, y, class_weight and validation of users into graphs, ids and label tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse
import torch
from jaxtyping import Int
from torch import Tensor

from unalike.data.adjacency import Adjacency, Ids
from unalike.data.graph import Graph
from unalike.data.task import CLASS_WEIGHTS, ClassWeights
from unalike.errors import InputError
from unalike.inference.new_nodes import AnyFeatures, as_feature_matrix, check_finite

# Given: graphs and rows as people hold them, turned into ours.


CONVERTERS: dict[str, Callable[[Any], Graph]] = {
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
    elif package in CONVERTERS:
        graph = CONVERTERS[package](given)
    else:
        rows = as_rows(given)
        square = rows.num_rows == rows.num_cols
        graph = Graph.build(rows, directed=not (square and rows.is_symmetric))
    if features is not None:
        told = as_feature_matrix(features)
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


# Targets: labels of any kind as numbers, who learns from them, what they weigh.


ClassWeight: TypeAlias = Mapping[Any, float | int] | str | None
UNLABELLED = -1
"""The number that means no label, as in scikit-learn and in our graphs."""


def encode_labels(given: Any) -> tuple[Int[Tensor, " nodes"], np.ndarray]:
    """The class of each node by number, and the classes; -1 where it is unknown.

    What is missing (None, not a number) and the number -1 are no labels.
    """
    told = np.asarray(given)
    if told.ndim == 2 and told.shape[1] == 1:
        told = _ravel_column(told)
    if told.ndim != 1:
        raise InputError(f"Labels are one for each node, not of shape {told.shape}.")
    labelled = ~_missing(told)
    values = told[labelled]
    if values.dtype.kind == "f":
        values = _check_integral(values)
    elif values.dtype.kind == "O":
        values = np.array(values.tolist())
    classes, numbers = np.unique(values, return_inverse=True)
    if len(classes) < 2:
        raise InputError(f"There is {len(classes)} class in the labels; 2 are needed.")
    labels = torch.full((len(told),), UNLABELLED)
    labels[torch.from_numpy(labelled)] = torch.from_numpy(numbers)
    return labels, classes


def lookup_labels(given: Any, classes: np.ndarray) -> Int[Tensor, " nodes"]:
    """The number of each label among known classes, -1 for others."""
    told = np.asarray(given)
    if told.dtype.kind == "O":
        told = np.array(told.tolist())
    places = np.searchsorted(classes, told).clip(max=len(classes) - 1)
    found = np.where(classes[places] == told, places, UNLABELLED)
    return torch.from_numpy(found)


def stratified_holdout(
    labels: Int[Tensor, " nodes"], share: float, seed: int
) -> tuple[Ids, Ids]:
    """Nodes to learn from and to choose by: the same share of every class.

    Where that leaves nobody to choose by, those who are learned from do it.
    """
    if not 0 <= share < 1:
        raise InputError(f"validation is {share}; it is at least 0 and below 1.")
    random = np.random.default_rng(seed)
    valid = torch.zeros(len(labels), dtype=torch.bool)
    for number in range(int(labels.max()) + 1):
        (members,) = np.nonzero(labels.numpy() == number)
        chosen = random.permutation(members)[: int(share * len(members))]
        valid[torch.from_numpy(chosen)] = True
    train = ((labels >= 0) & ~valid).nonzero()[:, 0]
    return train, valid.nonzero()[:, 0] if bool(valid.any()) else train


def given_holdout(
    labels: Int[Tensor, " nodes"], valid: Int[Tensor, " valid"]
) -> tuple[Ids, Ids]:
    """Nodes to learn from, where those to choose by are named."""
    if (labels[valid] < 0).any():
        raise InputError("The nodes named by validation need labels.")
    train = labels >= 0
    train[valid] = False
    return train.nonzero()[:, 0], valid


def class_weights(
    told: ClassWeight, classes: np.ndarray, labels: Int[Tensor, " train"]
) -> ClassWeights | None:
    """What a node of each class counts for in the loss; None where all do alike."""
    if told is None:
        return None
    if isinstance(told, Mapping):
        return torch.tensor([float(told.get(name, 1)) for name in classes.tolist()])
    if told not in CLASS_WEIGHTS:
        known = ", ".join(f"'{name}'" for name in CLASS_WEIGHTS)
        raise InputError(
            f"class_weight is '{told}'; it is None, {known} or a dict of weights."
        )
    return CLASS_WEIGHTS[told](labels, len(classes))


def _missing(told: np.ndarray) -> np.ndarray:
    if told.dtype.kind == "O":
        return np.array([one is None or one != one for one in told], bool)
    if told.dtype.kind == "f":
        return np.isnan(told) | (told == UNLABELLED)
    return told == UNLABELLED if told.dtype.kind == "i" else np.zeros(len(told), bool)


def _check_integral(values: np.ndarray) -> np.ndarray:
    if not np.isfinite(values).all():
        raise InputError("Input y contains infinity or a value too large.")
    if (values != np.floor(values)).any():
        raise InputError("Unknown label type: continuous. Labels are names or numbers.")
    return values


def _ravel_column(told: np.ndarray) -> np.ndarray:
    from unalike.inference.classifier import warn_of_column

    warn_of_column()
    return told[:, 0]
