"""`Task` (what is asked), `Solution` (scores), training curve, class weights, one-hot train labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from unalike.data.calibration import probabilities_to_logits, temperature
from unalike.data.graph import Graph
from unalike.data.metrics import Metric
from unalike.data.split import Split
from unalike.display import MAX_CLASSES_SHOWN, Displayable, TextTable

# Class weights: what a node of each class counts for in the loss.


ClassWeights = Float[Tensor, " classes"]


def balanced_class_weights(
    labels: Int[Tensor, " nodes"], num_classes: int
) -> ClassWeights:
    """n / (k n_c): each of the k classes that occur counts as much as any other.

    A node counts for 1 on average. A class that does not occur counts for nothing.
    """
    sizes = labels[labels >= 0].bincount(minlength=num_classes)
    there = sizes > 0
    shares = sizes.sum() / (there.sum() * sizes.clamp(min=1))
    return torch.where(there, shares, 0.0)


CLASS_WEIGHTS: dict[str, Callable[[Int[Tensor, " nodes"], int], ClassWeights]] = {
    "balanced": balanced_class_weights,
}

# Task and Solution: what is asked of a method, and what it answers.


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
    def from_split(
        cls, graph: Graph, split: Split, metric: Metric, seed: int = 0
    ) -> Task:
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
    valid_scores: list[float]
    """On the validation nodes."""
    best_epoch: int
    """The first epoch with the highest grade, counted from 1."""
    seconds: float
    """Wall clock of its stack, divided by the runs of that stack."""


@dataclass(frozen=True, eq=False)
class Solution(Displayable):
    """A score for every node and class; the highest is the answer."""

    scores: Float[Tensor, "nodes classes"]
    curve: Curve | None = None
    weights: dict[str, Tensor] | None = None
    """What a network learned, by the names it gives; only where the task asks."""
    is_probability: bool = False
    """Are the scores shares, 0 or more, and not logits?"""

    @property
    def logits(self) -> Float[Tensor, "nodes classes"]:
        """The scores as numbers of which a softmax makes probabilities."""
        return (
            probabilities_to_logits(self.scores) if self.is_probability else self.scores
        )

    def temperature(
        self, ids: Int[Tensor, " some"], labels: Int[Tensor, " nodes"]
    ) -> float:
        """The temperature that suits some nodes, given the labels of all."""
        return temperature(self.logits[ids], labels[ids])

    def summary(self) -> TextTable:
        nodes, classes = self.scores.shape
        sizes = self.scores.argmax(1).bincount(minlength=classes).tolist()
        shown = range(min(classes, MAX_CLASSES_SHOWN))
        rows = [["nodes", *(f"{sizes[number]:,}" for number in shown)]]
        title = f"Solution: {nodes:,} nodes, {classes} classes"
        return TextTable.from_rows(title, ["answer", *map(str, shown)], rows)


# Guess: what trained runs think of every node, beside what is known for sure.


def one_hot_train_labels(task: Task) -> Float[Tensor, "nodes classes"]:
    """A 1 at the class of each train node, 0 elsewhere."""
    known = torch.zeros(task.graph.num_nodes, task.graph.num_classes)
    labels = task.graph.labels[task.train]
    known[task.train] = F.one_hot(labels, task.graph.num_classes).float()
    return known
