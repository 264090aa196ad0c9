"""Regression: graphs whose label is a number, R², and mean squared error as the loss.

The label of a node is the position of its number among the different numbers of the
graph, so that splits, batches and masks are those of classes. Metrics look it up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.data.adjacency import Ids
from unalike.data.graph import Graph
from unalike.data.metrics import (
    ACCURACY,
    METRICS,
    MIN_WEIGHT,
    Labels,
    Metric,
    MetricValues,
    Scores,
    Weight,
    nan_unless_finite,
    weighted_mean,
)
from unalike.errors import UserError


def r2_without_numbers(scores: Scores, labels: Labels, weight: Weight) -> MetricValues:
    """R², for labels that are numbers: 1 - squared error / variance."""
    raise UserError("r2 is for graphs whose label is a number.")


R2 = Metric("r2", r2_without_numbers, r2_without_numbers)
"""The coefficient of determination; `metric_of_task` gives it the numbers."""

ALL_METRICS = {**METRICS, R2.name: R2}
"""Metrics of classes and of numbers by name."""


@dataclass(frozen=True)
class NumberScale:
    """Mean and std of the numbers of train nodes; methods learn (y - mean) / std."""

    mean: float
    std: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.mean) and 0 < self.std < math.inf):
            raise UserError(
                f"Numbers have no mean {self.mean} and deviation {self.std}."
            )

    @classmethod
    def of(cls, graph: Graph, train: Ids) -> NumberScale:
        """The scale of the numbers of some nodes."""
        numbers = numbers_of(graph)[graph.labels[train]]
        std = float(numbers.std(correction=0)) if len(numbers) else 0.0
        return cls(float(numbers.mean()) if len(numbers) else 0.0, std or 1.0)

    def numbers(
        self, scores: Float[Tensor, "nodes outputs"]
    ) -> Float[Tensor, " nodes"]:
        """The predicted numbers, in the unit of the labels."""
        return scores[:, 0].double() * self.std + self.mean


def numbers_of(graph: Graph) -> Float[Tensor, " labels"]:
    """The number that each label stands for."""
    assert graph.label_values is not None
    return graph.label_values


def predicts_numbers(graph: Graph) -> bool:
    """Whether the labels of a graph are numbers, not classes."""
    return graph.label_values is not None


def default_metric(graph: Graph) -> Metric:
    """R² of numbers, accuracy of classes."""
    return R2 if predicts_numbers(graph) else ACCURACY


def check_has_classes(graph: Graph, what: str) -> None:
    """Raise a `UserError` for what needs classes, on a graph with numbers."""
    if predicts_numbers(graph):
        raise UserError(f"{what} needs classes; the label of this graph is a number.")


def metric_of_task(metric: Metric, graph: Graph, train: Ids) -> Metric:
    """The metric for the labels of a graph: R² knows their numbers and their scale."""
    if not predicts_numbers(graph):
        return metric
    if metric.name != R2.name:
        raise UserError(
            f"{metric.name} is for classes; the label of this graph is a number, and "
            "its metric is r2."
        )
    scale = NumberScale.of(graph, train)
    targets = ((numbers_of(graph) - scale.mean) / scale.std).float()
    on_device: Callable[[torch.device], Tensor] = cache(targets.to)

    def target_of(labels: Labels) -> Tensor:
        return on_device(labels.device)[labels.clamp(min=0)]

    @nan_unless_finite
    def r2(scores: Scores, labels: Labels, weight: Weight) -> MetricValues:
        target = target_of(labels).double().expand_as(weight)
        error = weighted_mean((scores[..., 0].double() - target) ** 2, weight)
        center = weighted_mean(target, weight).unsqueeze(-1)
        return 1 - error / weighted_mean((target - center) ** 2, weight)

    def squared_error(scores: Scores, labels: Labels, weight: Weight) -> MetricValues:
        error = (scores[..., 0] - target_of(labels)) ** 2
        return weighted_mean(error, weight, min_weight=MIN_WEIGHT)

    return Metric(R2.name, r2, squared_error)
