"""Synthetic node features with a given informativeness: Gaussian or one-hot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from unalike.data.store import GraphWriter, add_csr
from unalike.datasets.readers import one_hot_features
from unalike.errors import UserError
from unalike.parallel import ordered_map
from unalike.progress import Progress

VALUES_PER_BLOCK = 4_000_000
MAX_INFORMATIVENESS = 1 - 1e-9
"""Gaussian means are at a finite distance up to this informativeness."""


@dataclass(frozen=True)
class Gaussian:
    """Dense features: one mean per class, in orthogonal directions, plus noise.

    The informativeness a is the total variation distance between the features of any
    two classes: the best classifier of two balanced classes has accuracy (1 + a) / 2.
    The means have the norm √2 Φ⁻¹((1 + a) / 2), for noise of variance 1.
    """

    width: int
    informativeness: float = 0.25
    dtype: str = "float32"

    def write(
        self, writer: GraphWriter, classes: np.ndarray, seed: int, progress: Progress
    ) -> None:
        """Sample and write the features of nodes of given classes."""
        means = self.means(int(classes.max()) + 1, seed)
        step = max(VALUES_PER_BLOCK // self.width, 1)
        features = writer.create_memmap(
            "features", self.dtype, (len(classes), self.width)
        )

        def sample(first: int) -> int:
            labels = classes[first : first + step]
            rng = np.random.default_rng([seed, 3, first])
            block = rng.standard_normal((len(labels), self.width), np.float32)
            block += means[labels]
            features[first : first + step] = block
            return len(labels)

        progress.stage("Sampling features", len(classes) / 1e3, "thousand nodes")
        for num_rows in ordered_map(sample, range(0, len(classes), step)):
            progress.advance(num_rows / 1e3)

    def means(self, num_classes: int, seed: int) -> np.ndarray:
        if self.width < num_classes:
            raise UserError(f"{num_classes} classes need as many features or more.")
        rng = np.random.default_rng([seed, 2])
        axes = np.linalg.qr(rng.standard_normal((self.width, num_classes)))[0].T
        informativeness = min(self.informativeness, MAX_INFORMATIVENESS)
        norm = np.sqrt(2) * NormalDist().inv_cdf((1 + informativeness) / 2)
        return (norm * axes).astype(np.float32)


@dataclass(frozen=True)
class OneHot:
    """Sparse features: one-hot values of several fields, as in a user profile.

    The values of a field follow Zipf's law and are assigned to the classes in turn. One
    field depends on the class: with the probability `informativeness` it has a value of
    the node's own class. That probability is the total variation distance again.
    """

    fields: tuple[int, ...]
    """The number of values of each field."""
    informativeness: float = 0.25
    telling: int = 0
    """The index of the field that depends on the class."""

    @property
    def width(self) -> int:
        return sum(self.fields)

    def write(
        self, writer: GraphWriter, classes: np.ndarray, seed: int, progress: Progress
    ) -> None:
        progress.stage("Sampling features", len(classes) / 1e3, "thousand nodes")
        codes = np.stack(list(self.values(classes, seed)), axis=1)
        add_csr(writer, "features_", one_hot_features(codes, self.fields))
        progress.advance(len(classes) / 1e3)

    def values(self, classes: np.ndarray, seed: int) -> Iterator[np.ndarray]:
        """The value of every node, field by field."""
        rng = np.random.default_rng([seed, 2])
        num_classes = int(classes.max()) + 1
        for field, size in enumerate(self.fields):
            zipf_cdf = np.cumsum(1 / np.arange(1, size + 1))
            uniform = rng.random(len(classes)) * zipf_cdf[-1]
            values = np.searchsorted(zipf_cdf[:-1], uniform, side="right")
            if field == self.telling:
                if self.informativeness and size < num_classes:
                    raise UserError(
                        f"A field of {size} values cannot depend on {num_classes} "
                        "classes; give it as many values as classes or more."
                    )
                own = values - values % num_classes + classes
                own = np.where(own < size, own, own - num_classes)
                is_own = rng.random(len(classes)) < self.informativeness
                values = np.where(is_own, own, values)
            yield values
