"""Labels: classes of any kind, numbered from 0 in sorted order."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

# Labels: classes of any kind, numbered from 0 in sorted order.


def encode_labels(
    told: Sequence[Hashable],
) -> tuple[Int[Tensor, " nodes"], list[Hashable]]:
    """The number of each label, and the classes in that order; None becomes -1."""
    classes = sorted({label for label in told if label is not None}, key=_numbers_first)
    numbers: dict[Hashable, int] = {label: place for place, label in enumerate(classes)}
    labels = [-1 if label is None else numbers[label] for label in told]
    return torch.tensor(labels, dtype=torch.int64), classes


def _numbers_first(label: Hashable) -> tuple[bool, object]:
    return (isinstance(label, str), label)


# Even quantiles: classes of about equal size from numbers such as years.


def quantile_labels(values: np.ndarray, num_classes: int) -> Int[Tensor, " nodes"]:
    """The class of each value: how many of the inner quantiles are not above it.

    The inner quantiles are those at 1/K, 2/K, ..., by linear interpolation. A value
    equal to one belongs to the class above it, so that many ties make classes uneven.
    Values that are not numbers have no class (-1).
    """
    values = np.asarray(values, np.float64).ravel()
    labels = np.full(len(values), -1)
    known = ~np.isnan(values)
    if known.any():
        shares = np.arange(1, num_classes) / num_classes
        cuts = np.quantile(values[known], shares)
        labels[known] = np.searchsorted(cuts, values[known], side="right")
    return torch.from_numpy(labels)
