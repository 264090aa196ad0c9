"""Answers: what a run said of its test nodes, counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from itertools import chain
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from unalike.calibration import Reliability, merged
from unalike.metrics import confusion

MOST_CLASSES = 50
"""A matrix of more classes is left out: it would outgrow all else that is kept."""
DIGITS = 6


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Which classes were taken for which, and how far certainty can be trusted."""

    confusion: list[list[int]] | None
    """Nodes by their class (row) and their answer (column)."""
    reliability: Reliability | None
    """None where scores are no log-odds, or not finite."""
    classes: list[str] | None = None
    """What the user calls the classes; None where they are numbers."""

    @classmethod
    def of(
        cls,
        scores: Float[Tensor, "test classes"],
        labels: Int[Tensor, " test"],
        *,
        log_odds: bool = True,
        classes: list[str] | None = None,
    ) -> Answers:
        """The answers that scores give to nodes whose labels are known."""
        small = scores.shape[1] <= MOST_CLASSES
        sure = log_odds and bool(scores.isfinite().all())
        return cls(
            confusion=counted(scores, labels) if small else None,
            reliability=reliability(scores, labels) if sure else None,
            classes=classes if small else None,
        )

    @classmethod
    def revived(cls, told: Any) -> Answers:
        """The answers that were written as JSON; a ValueError where they are none."""
        try:
            sure = told["reliability"]
            found = cls(
                confusion=told["confusion"],
                reliability=None if sure is None else Reliability(**sure),
                classes=told["classes"],
            )
            fit = found.fits()
        except (KeyError, TypeError) as error:
            raise ValueError(f"answers that are none: {error}") from None
        if not fit:
            raise ValueError("answers whose parts do not fit together")
        return found

    def fits(self) -> bool:
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


def counted(
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


def together(several: Sequence[Answers]) -> Answers:
    """The answers of runs on one dataset, summed; a part is there where all have it."""
    matrices = [one.confusion for one in several if one.confusion is not None]
    sure = [one.reliability for one in several if one.reliability is not None]
    whole = len(matrices) == len(several)
    return Answers(
        confusion=torch.tensor(matrices).sum(0).tolist() if whole else None,
        reliability=merged(sure) if len(sure) == len(several) else None,
        classes=several[0].classes,
    )
