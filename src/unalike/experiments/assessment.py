"""Assessment: how sure the answers of a sitting are, and which classes they confuse."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from unalike.calibration import Reliability
from unalike.experiments.run import Sitting
from unalike.metrics import confusion


@dataclass(frozen=True, eq=False)
class Assessment:
    """The test nodes of one split: their scores, labels and the temperature."""

    scores: Float[Tensor, "test classes"]
    """Logits, also where the method gives shares."""
    labels: Int[Tensor, " test"]
    temperature: float
    """The one that suits the valid nodes."""

    @property
    def raw(self) -> Reliability:
        """How far the scores can be trusted as they are."""
        return Reliability.of(self.scores.softmax(1), self.labels)

    @property
    def calibrated(self) -> Reliability:
        """How far they can be trusted once the temperature is taken."""
        warm = self.scores.double() / self.temperature
        return Reliability.of(warm.softmax(1), self.labels)


def assess(sitting: Sitting) -> list[Assessment]:
    """Assess every split of a sitting."""
    labels = sitting.exam.graph.labels
    pairs = zip(sitting.exam.splits.values(), sitting.solutions, strict=True)
    return [
        Assessment(
            solution.logits[split.test],
            labels[split.test],
            solution.temperature(split.valid, labels),
        )
        for split, solution in pairs
    ]


def pooled(assessments: list[Assessment], *, calibrated: bool) -> Reliability:
    """The reliability over the test nodes of all splits."""
    warm = [a.scores / (a.temperature if calibrated else 1) for a in assessments]
    labels = torch.cat([a.labels for a in assessments])
    return Reliability.of(torch.cat(warm).softmax(1), labels)


def confused(assessments: list[Assessment]) -> Float[Tensor, "classes classes"]:
    """Test nodes of all splits by their class (row) and their answer (column)."""
    scores = torch.cat([a.scores for a in assessments])
    labels = torch.cat([a.labels for a in assessments])
    return confusion(scores, labels, torch.ones(len(labels)))
