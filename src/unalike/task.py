"""Task and Solution: what is asked of a method, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from unalike.calibration import logits_of, temperature
from unalike.class_weights import ClassWeights
from unalike.display import SMALL, Displayed, Sheet
from unalike.graph import Graph
from unalike.metrics import Metric
from unalike.split import Split


@dataclass(frozen=True, eq=False)
class Task:
    """A graph with the labels of train and valid nodes, and no others."""

    graph: Graph
    train: Int[Tensor, " train"]
    valid: Int[Tensor, " valid"]
    metric: Metric
    seed: int = 0
    """Where chance begins, for methods that need it."""
    class_weights: ClassWeights | None = None
    """What a train node counts for in the loss, by class; None where all do alike."""
    patience: int | None = None
    """Epochs without a better grade after which training stops; None: it goes on."""
    keep: bool = False
    """Are the learned weights wanted besides the scores?"""

    @classmethod
    def hide(cls, graph: Graph, split: Split, metric: Metric, seed: int = 0) -> Task:
        """The task of a split: every label outside train and valid becomes unknown."""
        shown = torch.full_like(graph.labels, -1)
        for ids in (split.train, split.valid):
            shown[ids] = graph.labels[ids]
        return cls(replace(graph, labels=shown), split.train, split.valid, metric, seed)

    def weights_of(self, labels: Int[Tensor, " nodes"]) -> Float[Tensor, " nodes"]:
        """What nodes with these labels count for in the loss."""
        if self.class_weights is None:
            return torch.ones(len(labels), device=labels.device)
        return self.class_weights.to(labels.device)[labels.clamp(min=0)]


@dataclass(frozen=True)
class Curve:
    """How training went, epoch by epoch."""

    losses: list[float]
    """On the training nodes."""
    grades: list[float]
    """On the validation nodes."""
    best_epoch: int
    """The first epoch with the highest grade, counted from 1."""
    seconds: float
    """Wall clock of its stack, divided by the runs of that stack."""


@dataclass(frozen=True, eq=False)
class Solution(Displayed):
    """A score for every node and class; the highest is the answer."""

    scores: Float[Tensor, "nodes classes"]
    curve: Curve | None = None
    weights: dict[str, Tensor] | None = None
    """What a network learned, by the names it gives; only where the task asks."""
    shares: bool = False
    """Are the scores shares, 0 or more, and not logits?"""

    @property
    def logits(self) -> Float[Tensor, "nodes classes"]:
        """The scores as numbers of which a softmax makes probabilities."""
        return logits_of(self.scores) if self.shares else self.scores

    def temperature(
        self, ids: Int[Tensor, " some"], labels: Int[Tensor, " nodes"]
    ) -> float:
        """The temperature that suits some nodes, given the labels of all."""
        return temperature(self.logits[ids], labels[ids])

    def sheet(self) -> Sheet:
        nodes, classes = self.scores.shape
        sizes = self.scores.argmax(1).bincount(minlength=classes).tolist()
        shown = range(min(classes, SMALL))
        rows = [["nodes", *(f"{sizes[number]:,}" for number in shown)]]
        title = f"Solution: {nodes:,} nodes, {classes} classes"
        return Sheet(title, ["answer", *map(str, shown)], rows)
