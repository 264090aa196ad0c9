"""Metric value, confusion matrix, reliability and calibration of predictions on a split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from itertools import chain
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from unalike.data.calibration import Reliability, merge_reliability
from unalike.data.graph import Graph
from unalike.data.metrics import Metric, confusion
from unalike.data.split import PARTS, Split
from unalike.data.task import Curve, Solution
from unalike.errors import UserError

# Answers: what a run said of its test nodes, counted.


MAX_CLASSES = 50
"""A matrix of more classes is left out: it would outgrow all else that is kept."""
DIGITS = 6


@dataclass(frozen=True, kw_only=True)
class PredictionSummary:
    """Which classes were taken for which, and how far certainty can be trusted."""

    confusion: list[list[int]] | None
    """Nodes by their class (row) and their answer (column)."""
    reliability: Reliability | None
    """None where scores are no log-odds, or not finite."""
    classes: list[str] | None = None
    """What the user calls the classes; None where they are numbers."""

    @classmethod
    def from_scores(
        cls,
        scores: Float[Tensor, "test classes"],
        labels: Int[Tensor, " test"],
        *,
        log_odds: bool = True,
        classes: list[str] | None = None,
    ) -> PredictionSummary:
        """The answers that scores give to nodes whose labels are known."""
        small = scores.shape[1] <= MAX_CLASSES
        sure = log_odds and bool(scores.isfinite().all())
        return cls(
            confusion=confusion_counts(scores, labels) if small else None,
            reliability=reliability(scores, labels) if sure else None,
            classes=classes if small else None,
        )

    @classmethod
    def from_json(cls, told: Any) -> PredictionSummary:
        """The answers that were written as JSON; a ValueError where they are none."""
        try:
            sure = told["reliability"]
            found = cls(
                confusion=told["confusion"],
                reliability=None if sure is None else Reliability(**sure),
                classes=told["classes"],
            )
            fit = found.is_consistent()
        except (KeyError, TypeError) as error:
            raise ValueError(f"answers that are none: {error}") from None
        if not fit:
            raise ValueError("answers whose parts do not fit together")
        return found

    def is_consistent(self) -> bool:
        """Are parts that belong together of one length, and numbers all numbers?"""
        matrix, names = self.confusion or [], self.classes or []
        bins = astuple(self.reliability) if self.reliability else ()
        square = {len(matrix), *map(len, matrix), len(names or matrix)}
        numbers = chain(*matrix, *bins)
        return (
            max(len(square), len({len(part) for part in bins})) == 1
            and all(isinstance(number, int | float) for number in numbers)
            and all(isinstance(name, str) for name in names)
        )


def confusion_counts(
    scores: Float[Tensor, "test classes"], labels: Int[Tensor, " test"]
) -> list[list[int]]:
    """The confusion matrix as lists of whole numbers."""
    found = confusion(scores, labels, torch.ones(len(labels)))
    return [[int(count) for count in row] for row in found.tolist()]


def reliability(
    scores: Float[Tensor, "test classes"], labels: Int[Tensor, " test"]
) -> Reliability:
    """The reliability with few digits, so that it takes little room."""
    found = Reliability.of(scores.softmax(1), labels)
    return Reliability(
        found.counts,
        [round(sure, DIGITS) for sure in found.confidence],
        [round(right, DIGITS) for right in found.accuracy],
    )


def merge_summaries(several: Sequence[PredictionSummary]) -> PredictionSummary:
    """The answers of runs on one dataset, summed; a part is there where all have it."""
    matrices = [one.confusion for one in several if one.confusion is not None]
    sure = [one.reliability for one in several if one.reliability is not None]
    whole = len(matrices) == len(several)
    return PredictionSummary(
        confusion=torch.tensor(matrices).sum(0).tolist() if whole else None,
        reliability=merge_reliability(sure) if len(sure) == len(several) else None,
        classes=several[0].classes,
    )


# Exam: some splits of a dataset, as tasks to solve and as answers to grade by.


def check_split_gradable(split: Split, graph: Graph, metric: Metric, told: str) -> None:
    """Refuse a split whose validation or test nodes no scores could be graded on."""
    check_num_classes(metric, graph, told)
    for part in ("valid", "test"):
        labels = graph.labels[getattr(split, part)]
        flat = torch.zeros(len(labels), graph.num_classes)
        if not metric.score(flat, labels, torch.ones(len(labels))).isfinite():
            raise UserError(
                f"The {part} nodes of {told} cannot be graded by {metric.name}: "
                f"there are {len(labels)}, of {len(labels.unique())} classes."
            )


def check_num_classes(metric: Metric, graph: Graph, told: str) -> None:
    """Refuse a metric that cannot grade so many classes."""
    if metric.max_classes is not None and graph.num_classes > metric.max_classes:
        raise UserError(
            f"{metric.name} is for {metric.max_classes} classes; "
            f"{told} has {graph.num_classes}."
        )


def evaluate(
    solution: Solution, graph: Graph, split: Split, metric: Metric
) -> dict[str, Any]:
    """The percentage reached on each part of a split."""
    return {
        part: 100
        * float(
            metric.score(solution.scores[ids], graph.labels[ids], torch.ones(len(ids)))
        )
        for part in PARTS
        for ids in [getattr(split, part)]
    }


def training_history(curve: Curve | None, spent: float) -> dict[str, Any]:
    """What a result tells of the training behind it, or of the time it took."""
    if curve is None:
        return {"best_epoch": None, "seconds": spent, "losses": [], "grades": []}
    return {
        "best_epoch": curve.best_epoch,
        "seconds": curve.seconds,
        "losses": curve.losses,
        "grades": curve.valid_scores,
    }
