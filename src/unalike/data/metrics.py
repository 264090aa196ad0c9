"""Metrics: how good scores are, and the loss that training lowers for each.

Both take a stack of runs as well as one, and a weight per node: 0 leaves a node out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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
"""Less than any weight that counts; where no node does, nothing is learned."""


@dataclass(frozen=True)
class Metric:
    """A grade from 0 to 1, larger is better, and its differentiable stand-in."""

    name: str
    score: Callable[[Scores, Labels, Weight], MetricValues]
    loss: Callable[[Scores, Labels, Weight], MetricValues]
    most_classes: int | None = None
    """How many classes it can grade; None for any number."""


def accuracy(scores: Scores, labels: Labels, weight: Weight) -> MetricValues:
    """The share of nodes whose highest score is their class."""
    right = scores.argmax(-1) == labels
    return weighted_mean(right.double(), weight)


def roc_auc(scores: Scores, labels: Labels, weight: Weight) -> MetricValues:
    """The chance that a node of class 1 scores above one of class 0; ties count half.

    The weight of class 0 below each node of class 1 (Mann and Whitney 1947). Not a
    number where one of the classes is absent.
    """
    margin = (scores[..., 1] - scores[..., 0]).contiguous()
    ones, zeros = weight.double() * (labels == 1), weight.double() * (labels == 0)
    ordered, order = margin.sort(-1)
    below = F.pad(zeros.gather(-1, order).cumsum(-1), (1, 0))
    under = below.gather(-1, torch.searchsorted(ordered, margin))
    up_to = below.gather(-1, torch.searchsorted(ordered, margin, right=True))
    won = (ones * (under + up_to) / 2).sum(-1)
    return won / (ones.sum(-1) * zeros.sum(-1))


def average_precision(scores: Scores, labels: Labels, weight: Weight) -> MetricValues:
    """The mean, over nodes of class 1, of the share of class 1 from their score up.

    Not a number where class 1 is absent.
    """
    margin = (scores[..., 1] - scores[..., 0]).contiguous()
    every = weight.double()
    ones = every * (labels == 1)
    ordered, order = margin.sort(-1)
    place = torch.searchsorted(ordered, margin)
    found, all_ = (_from(part.gather(-1, order), place) for part in (ones, every))
    # A node without weight may lie above all that have one.
    precision = torch.where(ones > 0, found / all_, 0.0)
    return (ones * precision).sum(-1) / ones.sum(-1)


def f1(scores: Scores, labels: Labels, weight: Weight) -> MetricValues:
    """F1 of class 1: 2 TP / (2 TP + FP + FN).

    Not a number where no node is of class 1 and none is said to be.
    """
    return _f1_by_class(scores, labels, weight)[..., 1]


def macro_f1(scores: Scores, labels: Labels, weight: Weight) -> MetricValues:
    """The mean of F1 over the classes that occur or are answered."""
    return _f1_by_class(scores, labels, weight).nanmean(-1)


def balanced_accuracy(scores: Scores, labels: Labels, weight: Weight) -> MetricValues:
    """The mean, over the classes that occur, of the share that is found."""
    matrix = confusion(scores, labels, weight)
    return (_diagonal(matrix) / matrix.sum(-1)).nanmean(-1)


def confusion(scores: Scores, labels: Labels, weight: Weight) -> Confusion:
    """The weight of the nodes of each class (row) that got each answer (column)."""
    classes = scores.shape[-1]
    cell = labels.clamp(min=0) * classes + scores.argmax(-1)
    empty = weight.new_zeros(*weight.shape[:-1], classes * classes).double()
    return empty.scatter_add(-1, cell, weight.double()).unflatten(-1, (classes, -1))


def cross_entropy(scores: Scores, labels: Labels, weight: Weight) -> MetricValues:
    """Minus the log of the share that a softmax gives to the right class."""
    chosen = labels.clamp(min=0).expand(scores.shape[:-1])
    told = F.cross_entropy(scores.flatten(0, -2), chosen.flatten(), reduction="none")
    return weighted_mean(told.view(chosen.shape), weight, least=MIN_WEIGHT)


def two_column_cross_entropy(
    scores: Scores, labels: Labels, weight: Weight
) -> MetricValues:
    """Binary cross-entropy with the one-hot class, over nodes and columns."""
    target = F.one_hot(labels.clamp(min=0), scores.shape[-1]).to(scores.dtype)
    told = F.binary_cross_entropy_with_logits(
        scores, target.expand_as(scores), reduction="none"
    )
    return weighted_mean(told.mean(-1), weight, least=MIN_WEIGHT)


def weighted_mean(value: Weight, weight: Weight, least: float = 0.0) -> MetricValues:
    """The mean by weight; where all weigh less than `least`, next to nothing."""
    return (value * weight).sum(-1) / weight.sum(-1).clamp(min=least)


def _from(part: Weight, place: Int[Tensor, "*runs nodes"]) -> Weight:
    """The sum of what lies at each place and behind it."""
    return part.flip(-1).cumsum(-1).flip(-1).gather(-1, place)


def _f1_by_class(
    scores: Scores, labels: Labels, weight: Weight
) -> Float[Tensor, "*runs classes"]:
    matrix = confusion(scores, labels, weight)
    return 2 * _diagonal(matrix) / (matrix.sum(-1) + matrix.sum(-2))


def _diagonal(matrix: Confusion) -> Float[Tensor, "*runs classes"]:
    return matrix.diagonal(dim1=-2, dim2=-1)


ACCURACY = Metric("accuracy", accuracy, cross_entropy)
ROC_AUC = Metric("roc-auc", roc_auc, two_column_cross_entropy, most_classes=2)
AVERAGE_PRECISION = Metric(
    "average-precision", average_precision, cross_entropy, most_classes=2
)
F1 = Metric("f1", f1, cross_entropy, most_classes=2)
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
