"""Labels: classes of any kind, numbered from 0 in sorted order."""

from collections.abc import Hashable, Sequence

import torch
from jaxtyping import Int
from torch import Tensor


def number_labels(
    told: Sequence[Hashable],
) -> tuple[Int[Tensor, " nodes"], list[Hashable]]:
    """The number of each label, and the classes in that order; None becomes -1."""
    classes = sorted({label for label in told if label is not None}, key=_numbers_first)
    numbers: dict[Hashable, int] = {label: place for place, label in enumerate(classes)}
    labels = [-1 if label is None else numbers[label] for label in told]
    return torch.tensor(labels, dtype=torch.int64), classes


def _numbers_first(label: Hashable) -> tuple[bool, object]:
    return (isinstance(label, str), label)
