"""Metrics: how good scores are, and the loss that training lowers for each."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

Scores = Float[Tensor, "nodes classes"]
Labels = Int[Tensor, " nodes"]
Number = Float[Tensor, ""]


@dataclass(frozen=True)
class Metric:
    """A grade from 0 to 1, larger is better, and its differentiable stand-in."""

    name: str
    grade: Callable[[Scores, Labels], Number]
    loss: Callable[[Scores, Labels], Number]


def accuracy(scores: Scores, labels: Labels) -> Number:
    """The share of nodes whose highest score is their class."""
    return (scores.argmax(-1) == labels).double().mean()


def roc_auc(scores: Scores, labels: Labels) -> Number:
    """The chance that a node of class 1 scores above one of class 0; ties count half.

    Ranks of the margin between the two scores, summed over class 1 (Mann and Whitney
    1947). Not a number where one of the classes is absent.
    """
    margin = (scores[:, 1] - scores[:, 0]).contiguous()
    ordered = margin.sort().values
    below = torch.searchsorted(ordered, margin)
    up_to = torch.searchsorted(ordered, margin, right=True)
    rank = (below + up_to + 1).double() / 2
    positive = labels == 1
    ones, zeros = positive.sum().double(), (~positive).sum().double()
    return ((rank * positive).sum() - ones * (ones + 1) / 2) / (ones * zeros)


def two_column_cross_entropy(scores: Scores, labels: Labels) -> Number:
    """Binary cross-entropy with the one-hot class, over nodes and columns."""
    target = F.one_hot(labels, scores.shape[-1]).to(scores.dtype)
    return F.binary_cross_entropy_with_logits(scores, target)


ACCURACY = Metric("accuracy", accuracy, F.cross_entropy)
ROC_AUC = Metric("roc-auc", roc_auc, two_column_cross_entropy)

METRICS = {metric.name: metric for metric in (ACCURACY, ROC_AUC)}
