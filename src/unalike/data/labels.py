"""Encode class labels as integers; class labels from quantiles of a number."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor


def encode_labels(
    labels: Sequence[Hashable],
) -> tuple[Int[Tensor, " nodes"], list[Hashable]]:
    """Integer labels in sorted order of the classes, -1 for None; and the classes."""
    classes = sorted({one for one in labels if one is not None}, key=_numbers_first)
    codes: dict[Hashable, int] = {label: code for code, label in enumerate(classes)}
    encoded = [-1 if label is None else codes[label] for label in labels]
    return torch.tensor(encoded, dtype=torch.int64), classes


def _numbers_first(label: Hashable) -> tuple[bool, object]:
    return (isinstance(label, str), label)


def quantile_labels(values: np.ndarray, num_classes: int) -> Int[Tensor, " nodes"]:
    """Classes of about equal size: the number of inner quantiles <= each value.

    The inner quantiles are those at 1/K, 2/K, ..., by linear interpolation. A value
    equal to one belongs to the class above it, so many ties make classes uneven. NaN
    has no class (-1).
    """
    values = np.asarray(values, np.float64).ravel()
    labels = np.full(len(values), -1)
    known = ~np.isnan(values)
    if known.any():
        fractions = np.arange(1, num_classes) / num_classes
        thresholds = np.quantile(values[known], fractions)
        labels[known] = np.searchsorted(thresholds, values[known], side="right")
    return torch.from_numpy(labels)
