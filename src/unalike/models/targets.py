"""Targets: labels of any kind as numbers, who learns from them, what they weigh."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from unalike.adjacency import Ids
from unalike.class_weights import CLASS_WEIGHTS, ClassWeights
from unalike.errors import InputError

ClassWeight: TypeAlias = Mapping[Any, float | int] | str | None
UNLABELLED = -1
"""The number that means no label, as in scikit-learn and in our graphs."""


def number_targets(given: Any) -> tuple[Int[Tensor, " nodes"], np.ndarray]:
    """The class of each node by number, and the classes; -1 where it is unknown.

    What is missing (None, not a number) and the number -1 are no labels.
    """
    told = np.asarray(given)
    if told.ndim == 2 and told.shape[1] == 1:
        told = _flattened(told)
    if told.ndim != 1:
        raise InputError(f"Labels are one for each node, not of shape {told.shape}.")
    labelled = ~_missing(told)
    values = told[labelled]
    if values.dtype.kind == "f":
        values = _whole(values)
    elif values.dtype.kind == "O":
        values = np.array(values.tolist())
    classes, numbers = np.unique(values, return_inverse=True)
    if len(classes) < 2:
        raise InputError(f"There is {len(classes)} class in the labels; 2 are needed.")
    labels = torch.full((len(told),), UNLABELLED)
    labels[torch.from_numpy(labelled)] = torch.from_numpy(numbers)
    return labels, classes


def find_targets(given: Any, classes: np.ndarray) -> Int[Tensor, " nodes"]:
    """The number of each label among known classes, -1 for others."""
    told = np.asarray(given)
    if told.dtype.kind == "O":
        told = np.array(told.tolist())
    places = np.searchsorted(classes, told).clip(max=len(classes) - 1)
    found = np.where(classes[places] == told, places, UNLABELLED)
    return torch.from_numpy(found)


def set_aside(
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


def name_aside(
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


def _whole(values: np.ndarray) -> np.ndarray:
    if not np.isfinite(values).all():
        raise InputError("Input y contains infinity or a value too large.")
    if (values != np.floor(values)).any():
        raise InputError("Unknown label type: continuous. Labels are names or numbers.")
    return values


def _flattened(told: np.ndarray) -> np.ndarray:
    from unalike.models.protocol import warn_of_column

    warn_of_column()
    return told[:, 0]
