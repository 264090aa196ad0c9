"""Prediction: what a model says of some nodes."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Prediction:
    """The probability of every class for every node."""

    probabilities: Float[Tensor, "nodes classes"]
    classes: list[Hashable]
    """The names of the classes, in the order of the columns."""
    unknown: int = 0
    """Neighbours that the model does not know, and that were left out."""

    @property
    def labels(self) -> list[Hashable]:
        """The most probable class of each node."""
        return [self.classes[place] for place in self.probabilities.argmax(1).tolist()]
