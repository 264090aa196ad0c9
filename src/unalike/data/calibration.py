"""Temperature scaling, reliability bins and the expected calibration error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

Scores = Float[Tensor, "nodes classes"]
Labels = Int[Tensor, " nodes"]

MAX_INVERSE_TEMPERATURE = 1000.0
"""Upper bound, reached where all predictions are correct."""
MIN_INVERSE_TEMPERATURE = 1e-3
"""Lower bound, reached where scores are no better than random."""
MIN_PROBABILITY = 1e-6
"""Replaces a probability of 0, so that the loss of a wrong prediction is finite."""
STEPS = 100
RELATIVE_TOLERANCE = 1e-9
BINS = 15


def probabilities_to_logits(probabilities: Scores) -> Scores:
    """Logits whose softmax is the normalised probabilities; uniform for rows of 0."""
    probabilities = probabilities.double()
    total = probabilities.sum(1, keepdim=True)
    uniform = torch.full_like(probabilities, 1 / probabilities.shape[1])
    normalized = torch.where(total > 0, probabilities / total, uniform)
    return normalized.clamp(min=MIN_PROBABILITY).log()


def temperature(scores: Scores, labels: Labels) -> float:
    """The T that minimises the cross-entropy of softmax(scores / T) with the labels.

    The loss is convex in 1 / T: Newton's method, with a bisection step where it leaves
    the interval of the minimum (Guo et al. 2017, https://arxiv.org/abs/1706.04599).
    """
    scores = scores.double()
    low, high, inverse = MIN_INVERSE_TEMPERATURE, MAX_INVERSE_TEMPERATURE, 1.0
    for _ in range(STEPS):
        first, second = nll_derivatives(scores, labels, inverse)
        low, high = (inverse, high) if first < 0 else (low, inverse)
        newton = inverse - first / second if second > 0 else low
        previous = inverse
        inverse = newton if low < newton < high else (low + high) / 2
        if abs(inverse - previous) <= RELATIVE_TOLERANCE * previous:
            break
    return 1 / inverse


def nll_derivatives(
    scores: Scores, labels: Labels, inverse_temperature: float
) -> tuple[float, float]:
    """First and second derivative of the cross-entropy by the inverse temperature."""
    probabilities = (inverse_temperature * scores).softmax(1)
    mean = (probabilities * scores).sum(1)
    true_score = scores.gather(1, labels[:, None])[:, 0]
    variance = (probabilities * (scores - mean[:, None]) ** 2).sum(1)
    return float((mean - true_score).mean()), float(variance.mean())


@dataclass(frozen=True)
class Reliability:
    """Number, mean confidence and accuracy of nodes, in bins of their confidence."""

    counts: list[int]
    confidence: list[float]
    """The mean probability of the predicted class in each bin; 0 in an empty one."""
    accuracy: list[float]
    """The fraction of correct predictions in each bin; 0 in an empty one."""

    @classmethod
    def of(cls, probabilities: Scores, labels: Labels, bins: int = BINS) -> Reliability:
        """The reliability of probabilities that sum to 1 for each node."""
        confidence, predicted = probabilities.double().max(1)
        index = (confidence * bins).ceil().long().clamp(1, bins) - 1
        counts = index.bincount(minlength=bins)
        means = [
            (index.bincount(values, minlength=bins) / counts.clamp(min=1)).tolist()
            for values in (confidence, (predicted == labels).double())
        ]
        return cls(counts.tolist(), *means)

    @property
    def error(self) -> float:
        """The expected calibration error: mean of |confidence - accuracy| by nodes."""
        bins = zip(self.counts, self.confidence, self.accuracy, strict=True)
        total = sum(
            count * abs(confidence - accuracy) for count, confidence, accuracy in bins
        )
        return total / max(1, sum(self.counts))


def merge_reliability(parts: Sequence[Reliability]) -> Reliability:
    """The reliability of the nodes of several parts with the same bins."""
    counts = torch.tensor([part.counts for part in parts])
    total = counts.sum(0)
    means = [
        (counts * torch.tensor(values, dtype=torch.float64)).sum(0) / total.clamp(min=1)
        for values in (
            [part.confidence for part in parts],
            [part.accuracy for part in parts],
        )
    ]
    return Reliability(total.tolist(), *(mean.tolist() for mean in means))


def expected_calibration_error(probabilities: Scores, labels: Labels) -> float:
    """The mean difference between confidence and accuracy over bins; 0 is best."""
    return Reliability.of(probabilities, labels).error
