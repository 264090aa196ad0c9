"""Calibration: do nodes that are answered with 80 % turn out right in 80 % of cases?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

Scores = Float[Tensor, "nodes classes"]
Labels = Int[Tensor, " nodes"]

MAX_INVERSE_TEMPERATURE = 1000.0
"""The most that scores are multiplied by, where all of them are right."""
MIN_INVERSE_TEMPERATURE = 1e-3
"""The least, where they are no better than chance."""
MIN_PROBABILITY = 1e-6
"""What a share of 0 counts as: an answer may be wrong, but not infinitely so."""
STEPS = 100
EXACT = 1e-9
BINS = 15


def probabilities_to_logits(shares: Scores) -> Scores:
    """Numbers of which a softmax makes the same shares, scaled to a sum of 1.

    A node without any share may be of every class alike.
    """
    shares = shares.double()
    total = shares.sum(1, keepdim=True)
    even = torch.full_like(shares, 1 / shares.shape[1])
    scaled = torch.where(total > 0, shares / total, even)
    return scaled.clamp(min=MIN_PROBABILITY).log()


def temperature(scores: Scores, labels: Labels) -> float:
    """T for which softmax(scores / T) has the least cross-entropy with the labels.

    The loss is convex in 1 / T: Newton's steps, or bisection where one leaves the
    interval that must hold the minimum (Guo et al. 2017,
    https://arxiv.org/abs/1706.04599).
    """
    scores = scores.double()
    low, high, sharp = MIN_INVERSE_TEMPERATURE, MAX_INVERSE_TEMPERATURE, 1.0
    for _ in range(STEPS):
        slope, bend = nll_derivatives(scores, labels, sharp)
        low, high = (sharp, high) if slope < 0 else (low, sharp)
        step = sharp - slope / bend if bend > 0 else low
        before, sharp = sharp, step if low < step < high else (low + high) / 2
        if abs(sharp - before) <= EXACT * before:
            break
    return 1 / sharp


def nll_derivatives(
    scores: Scores, labels: Labels, sharp: float
) -> tuple[float, float]:
    """The first and second derivative of the loss by the sharpness."""
    shares = (sharp * scores).softmax(1)
    usual = (shares * scores).sum(1)
    right = scores.gather(1, labels[:, None])[:, 0]
    spread = (shares * (scores - usual[:, None]) ** 2).sum(1)
    return float((usual - right).mean()), float(spread.mean())


@dataclass(frozen=True)
class Reliability:
    """Nodes by how sure their answer is: how many, how sure, how often right."""

    counts: list[int]
    confidence: list[float]
    """The mean share of the answer in each bin; 0 in an empty one."""
    accuracy: list[float]
    """The share of right answers in each bin; 0 in an empty one."""

    @classmethod
    def of(cls, shares: Scores, labels: Labels, bins: int = BINS) -> Reliability:
        """The reliability of shares that sum to 1 for each node."""
        sure, answer = shares.double().max(1)
        place = (sure * bins).ceil().long().clamp(1, bins) - 1
        counts = place.bincount(minlength=bins)
        each = counts.clamp(min=1)
        means = [
            place.bincount(weights, minlength=bins) / each
            for weights in (sure, (answer == labels).double())
        ]
        confidence, accuracy = (mean.tolist() for mean in means)
        return cls(counts.tolist(), confidence, accuracy)

    @property
    def error(self) -> float:
        """The expected calibration error: mean |sure - right| over bins, by nodes."""
        gaps = zip(self.counts, self.confidence, self.accuracy, strict=True)
        total = sum(count * abs(sure - right) for count, sure, right in gaps)
        return total / max(1, sum(self.counts))


def merge_reliability(several: Sequence[Reliability]) -> Reliability:
    """The reliability of the nodes of several, which have the same bins."""
    counts = torch.tensor([one.counts for one in several])
    total = counts.sum(0)
    sums = [
        (counts * torch.tensor(means, dtype=torch.float64)).sum(0) / total.clamp(min=1)
        for means in (
            [one.confidence for one in several],
            [one.accuracy for one in several],
        )
    ]
    confidence, accuracy = (mean.tolist() for mean in sums)
    return Reliability(total.tolist(), confidence, accuracy)


def expected_calibration_error(shares: Scores, labels: Labels) -> float:
    """How far certainty is from the truth, on average; 0 is best."""
    return Reliability.of(shares, labels).error
