"""New features: whatever numbers are told of new nodes, as the model wants them."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import scipy.sparse
import torch

from unalike.adjacency import Adjacency
from unalike.datasets.preparation import normalise_rows
from unalike.errors import InputError
from unalike.features import Features, as_features
from unalike.models.facts import Facts

AnyFeatures: TypeAlias = (
    Features | np.ndarray | scipy.sparse.sparray | scipy.sparse.spmatrix
)


def fitting(given: AnyFeatures, facts: Facts) -> Features:
    """Features of the width and the kind that a model was trained on."""
    features = readable(given)
    if features.shape[1] != facts.num_features:
        told = " x ".join(map(str, features.shape))
        raise InputError(
            f"The features are {told}; the model was trained on "
            f"{facts.num_features} for each node."
        )
    check_finite(features)
    if facts.sparse and not isinstance(features, Adjacency):
        features = Adjacency.from_scipy(scipy.sparse.csr_array(features.numpy()))
    elif not facts.sparse and isinstance(features, Adjacency):
        features = features.to_dense()
    return normalise_rows(features) if facts.row_normalised else features


def readable(given: AnyFeatures) -> Features:
    """Features as unalike holds them, or an error that says what they should be."""
    numbers = np.array(given) if _is_foreign(given) else given
    if len(numbers.shape) != 2:
        raise InputError(
            "Features have two dimensions, nodes and columns; these have "
            f"{len(numbers.shape)}."
        )
    try:
        return as_features(numbers)
    except (TypeError, ValueError, RuntimeError):
        raise InputError("Features are numbers, a row for each node.") from None


def _is_foreign(given: AnyFeatures) -> bool:
    """Is it neither a tensor nor sparse, and to be copied?"""
    known = isinstance(given, torch.Tensor | Adjacency)
    return not (known or scipy.sparse.issparse(given))


def check_finite(features: Features) -> None:
    """Refuse features that are no numbers, and say which."""
    values = features.values if isinstance(features, Adjacency) else features
    if values is None or bool(torch.isfinite(values).all()):
        return
    place = (~torch.isfinite(values)).nonzero()[0].tolist()
    if isinstance(features, Adjacency):
        rows = features.row_of_entry, features.columns
        place = [int(part[place[0]]) for part in rows]
    row, column = place
    raise InputError(f"Feature {column} of node {row} is not a finite number.")
