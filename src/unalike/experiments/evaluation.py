"""Metric value, confusion matrix, reliability and calibration on a split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from unalike.data.calibration import Reliability, merge_reliability
from unalike.data.graph import Graph
from unalike.data.metrics import Metric, confusion
from unalike.data.regression import metric_of_task
from unalike.data.split import PARTS, Split
from unalike.data.task import Curve, Solution
from unalike.errors import InputError, UserError

MAX_CLASSES = 50
"""Larger confusion matrices are not stored: they would dominate the database."""
DIGITS = 6
"""Of stored confidence and accuracy, so that results stay small."""


def evaluate(
    solution: Solution, graph: Graph, split: Split, metric: Metric
) -> dict[str, Any]:
    """Score the train, valid and test nodes of a split, in percent."""
    metric = metric_of_task(metric, graph, split.train)
    return {
        part: percent_score(metric, solution.scores[ids], graph.labels[ids])
        for part in PARTS
        for ids in [getattr(split, part)]
    }


def percent_score(
    metric: Metric,
    scores: Float[Tensor, "nodes classes"],
    labels: Int[Tensor, " nodes"],
) -> float:
    """Compute a metric in percent with equal weight for all nodes."""
    return 100 * float(metric.score(scores, labels, torch.ones(len(labels))))


def has_score(metric: Metric, labels: Int[Tensor, " nodes"], num_classes: int) -> bool:
    """Check that a metric is defined on labels: ROC AUC, for one, needs two classes."""
    constant = torch.zeros(len(labels), num_classes)
    return bool(metric.score(constant, labels, torch.ones(len(labels))).isfinite())


def check_split_number(number: int, num_splits: int, dataset: str) -> None:
    """Raise a `UserError` if a dataset has no split of this number."""
    if number not in range(num_splits):
        raise UserError(
            f"{dataset} has no split {number}; they run from 0 to {num_splits - 1}."
        )


def check_metric_defined(split: Split, graph: Graph, metric: Metric, name: str) -> None:
    """Raise a `UserError` if the metric is undefined on valid or test nodes."""
    check_num_classes(metric, graph, name)
    metric = metric_of_task(metric, graph, split.train)
    for part in ("valid", "test"):
        labels = graph.labels[getattr(split, part)]
        if not has_score(metric, labels, graph.num_classes):
            raise UserError(
                f"The {part} nodes of {name} cannot be scored by {metric.name}: "
                f"there are {len(labels)}, of {len(labels.unique())} classes."
            )


def check_num_classes(metric: Metric, graph: Graph, name: str) -> None:
    """Raise a `UserError` if a metric does not support so many classes."""
    if metric.max_classes is not None and graph.num_classes > metric.max_classes:
        raise UserError(
            f"{metric.name} is for {metric.max_classes} classes; "
            f"{name} has {graph.num_classes}."
        )


def training_history(curve: Curve | None, seconds: float) -> dict[str, Any]:
    """The curve fields of a result; methods without training have only a duration."""
    if curve is None:
        return {"best_epoch": None, "seconds": seconds, "losses": [], "grades": []}
    return {
        "best_epoch": curve.best_epoch,
        "seconds": curve.seconds,
        "losses": curve.losses,
        "grades": curve.valid_scores,
    }


# Confusion matrix and reliability of test predictions


@dataclass(frozen=True, kw_only=True)
class PredictionSummary:
    """Confusion matrix and reliability of the test predictions of a run."""

    confusion: list[list[int]] | None
    """Number of nodes by true class (row) and predicted class (column)."""
    reliability: Reliability | None
    """None if the scores are not logits, or not finite."""
    classes: list[str] | None = None
    """Class names of the user; None if classes are numbers."""

    @classmethod
    def from_scores(
        cls,
        scores: Float[Tensor, "test classes"],
        labels: Int[Tensor, " test"],
        *,
        are_logits: bool = True,
        classes: list[str] | None = None,
    ) -> PredictionSummary:
        """Summarise the predictions for nodes with known labels."""
        matrix = bins = None
        few_classes = scores.shape[1] <= MAX_CLASSES
        if few_classes:
            matrix = confusion(scores, labels, torch.ones(len(labels))).long().tolist()
        if are_logits and bool(scores.isfinite().all()):
            full = Reliability.of(scores.softmax(1), labels)
            bins = Reliability(
                full.counts,
                [round(value, DIGITS) for value in full.confidence],
                [round(value, DIGITS) for value in full.accuracy],
            )
        return cls(
            confusion=matrix,
            reliability=bins,
            classes=classes if few_classes else None,
        )

    @classmethod
    def from_json(cls, document: Any) -> PredictionSummary:
        """Read a summary from JSON; raise an `InputError` if it is none."""
        try:
            bins = document["reliability"]
            summary = cls(
                confusion=document["confusion"],
                reliability=None if bins is None else Reliability(**bins),
                classes=document["classes"],
            )
            consistent = summary.is_consistent()
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(f"damaged answers: {error}") from None
        if not consistent:
            raise InputError("answers whose parts contradict each other")
        return summary

    def is_consistent(self) -> bool:
        """Check that lengths agree, numbers are numbers and names are strings."""
        matrix, names = self.confusion or [], self.classes or []
        bins = astuple(self.reliability) if self.reliability else ()
        sizes = {len(matrix), *map(len, matrix), len(names or matrix)}
        numbers = chain(*matrix, *bins)
        return (
            max(len(sizes), len({len(values) for values in bins})) == 1
            and all(isinstance(number, int | float) for number in numbers)
            and all(isinstance(name, str) for name in names)
        )


def merge_summaries(summaries: Sequence[PredictionSummary]) -> PredictionSummary:
    """Add up the summaries of runs on one dataset; None if a run has no such part."""
    matrices = [one.confusion for one in summaries if one.confusion is not None]
    bins = [one.reliability for one in summaries if one.reliability is not None]
    every = len(summaries)
    all_have_matrices = len(matrices) == every
    return PredictionSummary(
        confusion=torch.tensor(matrices).sum(0).tolist() if all_have_matrices else None,
        reliability=merge_reliability(bins) if len(bins) == every else None,
        classes=summaries[0].classes,
    )


@dataclass(frozen=True, eq=False)
class SplitCalibration:
    """Test logits of one split with the temperature fitted on its valid nodes."""

    logits: Float[Tensor, "test classes"]
    """Also where the method predicts probabilities."""
    labels: Int[Tensor, " test"]
    temperature: float

    @classmethod
    def fit(
        cls, solution: Solution, split: Split, labels: Int[Tensor, " nodes"]
    ) -> SplitCalibration:
        """Fit the temperature on the valid nodes of a split."""
        temperature = solution.temperature(split.valid, labels)
        return cls(solution.logits[split.test], labels[split.test], temperature)

    @cached_property
    def raw(self) -> Reliability:
        """The reliability of the uncalibrated predictions."""
        return Reliability.of(self.logits.softmax(1), self.labels)

    @cached_property
    def calibrated(self) -> Reliability:
        """The reliability after division of the logits by the temperature."""
        scaled = self.logits.double() / self.temperature
        return Reliability.of(scaled.softmax(1), self.labels)

    @property
    def confusion(self) -> Float[Tensor, "classes classes"]:
        """The number of nodes by true class (row) and predicted class (column)."""
        return confusion(self.logits, self.labels, torch.ones(len(self.labels)))
