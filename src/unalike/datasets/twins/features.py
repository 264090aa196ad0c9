"""Gaussian and one-hot features with a given informativeness."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import torch

from unalike.data.store import GraphWriter
from unalike.errors import UserError
from unalike.progress import Progress

_NUMBERS_AT_ONCE = 4_000_000
_NEARLY_CERTAIN = 1 - 1e-9


@dataclass(frozen=True)
class Gaussian:
    """Dense features: the mean of the class, in orthogonal directions, and noise.

    The informativeness a is the total variation distance between the features of any
    two classes: knowing them, one tells two even classes apart in (1 + a) / 2 of all
    cases. The means are √2 Φ⁻¹((1 + a) / 2) long, for noise of variance 1.
    """

    width: int
    informativeness: float = 0.25
    dtype: str = "float32"

    def __post_init__(self) -> None:
        check_probability(self.informativeness)

    def write(
        self, draft: GraphWriter, classes: np.ndarray, seed: int, progress: Progress
    ) -> None:
        """Put the features of nodes of known classes into a draft."""
        means = self.means(int(classes.max()) + 1, seed)
        size = max(_NUMBERS_AT_ONCE // self.width, 1)
        features = draft.create_memmap(
            "features", self.dtype, (len(classes), self.width)
        )

        def work(first: int) -> int:
            rows = classes[first : first + size]
            random = np.random.default_rng([seed, 3, first])
            noise = random.standard_normal((len(rows), self.width), np.float32)
            noise += means[rows]
            features[first : first + size] = noise
            return len(rows)

        progress.stage("Drawing features", len(classes) / 1e3, "thousand nodes")
        with ThreadPoolExecutor(torch.get_num_threads()) as pool:
            for done in pool.map(work, range(0, len(classes), size)):
                progress.advance(done / 1e3)

    def means(self, num_classes: int, seed: int) -> np.ndarray:
        """The mean of each class."""
        if self.width < num_classes:
            raise UserError(f"{num_classes} classes need as many features or more.")
        random = np.random.default_rng([seed, 2])
        axes = np.linalg.qr(random.standard_normal((self.width, num_classes)))[0].T
        certainty = min(self.informativeness, _NEARLY_CERTAIN)
        length = np.sqrt(2) * NormalDist().inv_cdf((1 + certainty) / 2)
        return (length * axes).astype(np.float32)


@dataclass(frozen=True)
class OneHot:
    """Sparse features: a value for each of several attributes, as in a profile.

    The values of an attribute follow Zipf's law, and are dealt to the classes in turn.
    One attribute tells of the class: with the chance `informativeness` it takes a value
    of the node's own class. That chance is the total variation distance again.
    """

    fields: tuple[int, ...]
    """How many values each attribute has."""
    informativeness: float = 0.25
    telling: int = 0
    """The attribute that tells of the class."""

    def __post_init__(self) -> None:
        check_probability(self.informativeness)

    @property
    def width(self) -> int:
        return sum(self.fields)

    def write(
        self, draft: GraphWriter, classes: np.ndarray, seed: int, progress: Progress
    ) -> None:
        """Put the features of nodes of known classes into a draft."""
        progress.stage("Drawing features", len(classes) / 1e3, "thousand nodes")
        num_fields = len(self.fields)
        columns = np.stack(list(self.values(classes, seed)), axis=1)
        columns += np.cumsum([0, *self.fields[:-1]])
        draft.add("features_starts", np.arange(len(classes) + 1) * num_fields)
        draft.add("features_columns", columns.astype(np.int32).ravel())
        progress.advance(len(classes) / 1e3)

    def values(self, classes: np.ndarray, seed: int) -> Iterator[np.ndarray]:
        """The value of every node, attribute by attribute."""
        random = np.random.default_rng([seed, 2])
        num_classes = int(classes.max()) + 1
        for field, size in enumerate(self.fields):
            law = np.cumsum(1 / np.arange(1, size + 1))
            spots = random.random(len(classes)) * law[-1]
            values = np.searchsorted(law[:-1], spots, side="right")
            if field == self.telling:
                own = values - values % num_classes + classes
                own = np.where(own < size, own, own - num_classes)
                tells = random.random(len(classes)) < self.informativeness
                values = np.where(tells, own, values)
            yield values


def check_probability(informativeness: float) -> None:
    """Refuse an informativeness that is no share."""
    if not 0 <= informativeness <= 1:
        raise UserError(f"An informativeness of {informativeness} is not in 0 to 1.")
