"""Metrics (accuracy, ROC AUC, average precision, F1) and the losses for training.

All take the scores of one run or of a stack of runs, and a weight for each node;
weight 0 leaves a node out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

Scores = Float[Tensor, "*runs nodes classes"]
Labels = Int[Tensor, "*shared nodes"]
Weight = Float[Tensor, "*runs nodes"]
MetricValues = Float[Tensor, "*runs"]
Confusion = Float[Tensor, "*runs classes classes"]

MIN_WEIGHT = 1e-30
"""Smaller than any sum of weights; avoids 0 / 0 if all nodes have weight 0."""


ScoreFunction = Callable[[Scores, Labels, Weight], MetricValues]


@dataclass(frozen=True)
class Metric:
    """A score from 0 to 1, larger is better, and the loss to train for it."""

    name: str
    score: ScoreFunction
    loss: ScoreFunction
    max_classes: int | None = None
    """The largest number of classes; None for any number."""


def nan_unless_finite(function: ScoreFunction) -> ScoreFunction:
    """A metric that is NaN if a node with a weight has NaN or infinite scores."""

    @wraps(function)
    def checked(scores: Scores, labels: Labels, weight: Weight) -> MetricValues:
        finite = (scores.isfinite().all(-1) | (weight == 0)).all(-1)
        value = function(scores.nan_to_num(), labels, weight)
        return torch.where(finite, value, torch.nan)

    return checked


@nan_unless_finite
def accuracy(scores: Scores, labels: Labels, weight: Weight) -> MetricValues:
    """The fraction of nodes whose highest score is their class."""
    correct = scores.argmax(-1) == labels
    return weighted_mean(correct.double(), weight)


@nan_unless_finite
def roc_auc(scores: Scores, labels: Labels, weight: Weight) -> MetricValues:
    """ROC AUC of the score margin of class 1 over class 0; ties count half.

    The weight of class 0 below each node of class 1 (Mann and Whitney 1947). NaN if one
    of the classes is absent.
    """
    margin = (scores[..., 1] - scores[..., 0]).contiguous()
    ones, zeros = weight.double() * (labels == 1), weight.double() * (labels == 0)
    ordered, order = margin.sort(-1)
    below = F.pad(zeros.gather(-1, order).cumsum(-1), (1, 0))
    lower = below.gather(-1, torch.searchsorted(ordered, margin))
    lower_or_equal = below.gather(-1, torch.searchsorted(ordered, margin, right=True))
    pairs = (ones * (lower + lower_or_equal) / 2).sum(-1)
    return pairs / (ones.sum(-1) * zeros.sum(-1))


@nan_unless_finite
def average_precision(scores: Scores, labels: Labels, weight: Weight) -> MetricValues:
    """The mean precision at the score of each node of class 1; NaN without one."""
    margin = (scores[..., 1] - scores[..., 0]).contiguous()
    weights = weight.double()
    ones = weights * (labels == 1)
    ordered, order = margin.sort(-1)
    rank = torch.searchsorted(ordered, margin)
    true_positive, positive = (
        _sum_from(part.gather(-1, order), rank) for part in (ones, weights)
    )
    # A node of weight 0 may score above all nodes that have a weight.
    precision = torch.where(ones > 0, true_positive / positive, 0.0)
    return (ones * precision).sum(-1) / ones.sum(-1)


@nan_unless_finite
def f1(scores: Scores, labels: Labels, weight: Weight) -> MetricValues:
    """F1 of class 1, 2 TP / (2 TP + FP + FN); NaN without any of these."""
    return _f1_by_class(scores, labels, weight)[..., 1]


@nan_unless_finite
def macro_f1(scores: Scores, labels: Labels, weight: Weight) -> MetricValues:
    """The mean F1 of the classes that occur or are predicted."""
    return _f1_by_class(scores, labels, weight).nanmean(-1)


@nan_unless_finite
def balanced_accuracy(scores: Scores, labels: Labels, weight: Weight) -> MetricValues:
    """The mean recall of the classes that occur."""
    matrix = confusion(scores, labels, weight)
    return (_diagonal(matrix) / matrix.sum(-1)).nanmean(-1)


def confusion(scores: Scores, labels: Labels, weight: Weight) -> Confusion:
    """Confusion matrix: weight of nodes by true (row) and predicted class (column)."""
    classes = scores.shape[-1]
    cell = labels.clamp(min=0) * classes + scores.argmax(-1)
    empty = weight.new_zeros(*weight.shape[:-1], classes * classes).double()
    return empty.scatter_add(-1, cell, weight.double()).unflatten(-1, (classes, -1))


def cross_entropy(scores: Scores, labels: Labels, weight: Weight) -> MetricValues:
    """Softmax cross-entropy of the true class."""
    target = labels.clamp(min=0).expand(scores.shape[:-1])
    loss = F.cross_entropy(scores.flatten(0, -2), target.flatten(), reduction="none")
    return weighted_mean(loss.view(target.shape), weight, min_weight=MIN_WEIGHT)


def two_column_cross_entropy(
    scores: Scores, labels: Labels, weight: Weight
) -> MetricValues:
    """Binary cross-entropy with the one-hot class, mean over nodes and columns."""
    target = F.one_hot(labels.clamp(min=0), scores.shape[-1]).to(scores.dtype)
    loss = F.binary_cross_entropy_with_logits(
        scores, target.expand_as(scores), reduction="none"
    )
    return weighted_mean(loss.mean(-1), weight, min_weight=MIN_WEIGHT)


def weighted_mean(
    values: Weight, weight: Weight, min_weight: float = 0.0
) -> MetricValues:
    """The weighted mean; the sum of weights is at least `min_weight`."""
    return (values * weight).sum(-1) / weight.sum(-1).clamp(min=min_weight)


def _sum_from(values: Weight, start: Int[Tensor, "*runs nodes"]) -> Weight:
    """The sums values[start:] for each start."""
    return values.flip(-1).cumsum(-1).flip(-1).gather(-1, start)


def _f1_by_class(
    scores: Scores, labels: Labels, weight: Weight
) -> Float[Tensor, "*runs classes"]:
    matrix = confusion(scores, labels, weight)
    return 2 * _diagonal(matrix) / (matrix.sum(-1) + matrix.sum(-2))


def _diagonal(matrix: Confusion) -> Float[Tensor, "*runs classes"]:
    return matrix.diagonal(dim1=-2, dim2=-1)


ACCURACY = Metric("accuracy", accuracy, cross_entropy)
ROC_AUC = Metric("roc-auc", roc_auc, two_column_cross_entropy, max_classes=2)
AVERAGE_PRECISION = Metric(
    "average-precision", average_precision, cross_entropy, max_classes=2
)
F1 = Metric("f1", f1, cross_entropy, max_classes=2)
MACRO_F1 = Metric("macro-f1", macro_f1, cross_entropy)
BALANCED_ACCURACY = Metric("balanced-accuracy", balanced_accuracy, cross_entropy)

METRICS = {
    metric.name: metric
    for metric in (
        ACCURACY,
        ROC_AUC,
        AVERAGE_PRECISION,
        F1,
        MACRO_F1,
        BALANCED_ACCURACY,
    )
}
