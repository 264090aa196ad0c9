"""`Task` (graph and split), `Solution` (scores), training curve, class weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from unalike.data.calibration import probabilities_to_logits, temperature
from unalike.data.graph import Graph
from unalike.data.metrics import Metric
from unalike.data.regression import metric_of_task
from unalike.data.split import Split
from unalike.display import MAX_CLASSES_SHOWN, Displayable, TextTable
from unalike.errors import UserError, did_you_mean

ClassWeights = Float[Tensor, " classes"]


def balanced_class_weights(
    labels: Int[Tensor, " nodes"], num_classes: int
) -> ClassWeights:
    """n / (k n_c): the k classes that occur have the same total weight.

    The mean weight of a node is 1. A class that does not occur has weight 0.
    """
    sizes = labels[labels >= 0].bincount(minlength=num_classes)
    occurs = sizes > 0
    weights = sizes.sum() / (occurs.sum() * sizes.clamp(min=1))
    return torch.where(occurs, weights, 0.0)


CLASS_WEIGHTS: dict[str, Callable[[Int[Tensor, " nodes"], int], ClassWeights]] = {
    "balanced": balanced_class_weights,
}


def parse_class_weights(text: str) -> dict[str, float]:
    """Weights by class name from text such as fraud=5,good=1."""
    weights = {}
    for part in text.split(","):
        name, separator, number = part.rpartition("=")
        try:
            weight = float(number)
        except ValueError:
            weight = -1.0
        if not separator or not (isfinite(weight) and weight >= 0):
            raise UserError(
                f"The class weights '{part.strip()}' are none of "
                f"{', '.join(CLASS_WEIGHTS)} and no NAME=NUMBER, as in fraud=5,good=1."
            )
        weights[name.strip()] = weight
    if not any(weights.values()):
        raise UserError("All class weights are 0; one must be above.")
    return weights


def class_weights_by_name(text: str, graph: Graph) -> ClassWeights:
    """The weight of each class of a graph; classes that are not named weigh 1."""
    names = [str(name) for name in graph.class_names or range(graph.num_classes)]
    weights = parse_class_weights(text)
    for name in weights:
        if name not in names:
            hint = did_you_mean(name, names)
            raise UserError(f"The graph has no class '{name}' to weigh.{hint}")
    return torch.tensor([weights.get(name, 1.0) for name in names])


@dataclass(frozen=True, eq=False, repr=False)
class Task:
    """A graph with the labels of train and validation nodes, and no others."""

    graph: Graph
    train: Int[Tensor, " train"]
    valid: Int[Tensor, " valid"]
    metric: Metric
    seed: int = 0
    """Seed of the random generators of a method."""
    class_weights: ClassWeights | None = None
    """Weight of a train node in the loss, by class; None: all weigh the same."""
    patience: int | None = None
    """Epochs without a better validation score before early stopping; None: no early
    stopping."""
    keep: bool = False
    """Return the learned weights with the scores."""
    use_last: bool = False
    """Use the weights of the last epoch, not those of the best one."""
    every_row: bool = False
    """Compute the rows of all nodes in each epoch, with weight 0 where they are not
    needed, so that random numbers and rounding do not depend on the train nodes."""

    @classmethod
    def from_split(
        cls, graph: Graph, split: Split, metric: Metric, seed: int = 0
    ) -> Task:
        """The task of a split; labels outside train and valid become -1."""
        visible = replace(graph, labels=labels_of(graph, split.train, split.valid))
        metric = metric_of_task(metric, visible, split.train)
        return cls(visible, split.train, split.valid, metric, seed)

    def __repr__(self) -> str:
        sizes = f"train {len(self.train):,}, valid {len(self.valid):,}"
        return f"Task({self.graph!r}, {sizes}, {self.metric.name})"

    def weights_of(self, labels: Int[Tensor, " nodes"]) -> Float[Tensor, " nodes"]:
        """The weight in the loss of nodes with these labels."""
        if self.class_weights is None:
            return torch.ones(len(labels), device=labels.device)
        return self.class_weights.to(labels.device)[labels.clamp(min=0)]


@dataclass(frozen=True)
class Curve:
    """Loss and validation score of each epoch of a training run."""

    losses: list[float]
    """Loss on the train nodes."""
    valid_scores: list[float]
    """Score on the validation nodes."""
    best_epoch: int
    """The first epoch with the highest validation score, counted from 1."""
    seconds: float
    """Wall-clock time of the stack of runs, divided by their number."""


@dataclass(frozen=True, eq=False, repr=False)
class Solution(Displayable):
    """A score for every node and class; the class with the highest is predicted."""

    scores: Float[Tensor, "nodes classes"]
    curve: Curve | None = None
    weights: dict[str, Tensor] | None = None
    """Learned weights by parameter name, if the task asks for them."""
    is_probability: bool = False
    """Whether the scores are probabilities, not necessarily normalised, or logits."""

    def __repr__(self) -> str:
        nodes, classes = self.scores.shape
        return f"Solution({nodes:,} nodes, {classes} classes)"

    @cached_property
    def error(self) -> str:
        """Why the scores cannot be used, in one line; empty if they can."""
        losses = [] if self.curve is None else self.curve.losses
        epochs = [epoch for epoch, loss in enumerate(losses, 1) if not isfinite(loss)]
        if epochs:
            reason = f"the loss of epoch {epochs[0]} is {losses[epochs[0] - 1]}"
        elif not bool(self.scores.isfinite().all()):
            reason = "no epoch has finite scores"
        else:
            return ""
        return (
            f"Training diverged, {reason}; lower the learning rate, or look for NaN "
            "and huge values in the features."
        )

    def raise_if_failed(self) -> None:
        """Raise a `UserError` if the scores cannot be used."""
        if self.error:
            raise UserError(self.error)

    @property
    def logits(self) -> Float[Tensor, "nodes classes"]:
        """The scores as logits: their softmax gives probabilities."""
        return (
            probabilities_to_logits(self.scores) if self.is_probability else self.scores
        )

    def temperature(
        self, ids: Int[Tensor, " ids"], labels: Int[Tensor, " nodes"]
    ) -> float:
        """The temperature fitted to some nodes, given the labels of all."""
        return temperature(self.logits[ids], labels[ids])

    def summary(self) -> TextTable:
        nodes, classes = self.scores.shape
        sizes = self.scores.argmax(1).bincount(minlength=classes).tolist()
        shown = range(min(classes, MAX_CLASSES_SHOWN))
        rows = [["nodes", *(f"{sizes[number]:,}" for number in shown)]]
        title = f"Solution: {nodes:,} nodes, {classes} classes"
        return TextTable.from_rows(title, ["answer", *map(str, shown)], rows)


def labels_of(graph: Graph, *parts: Int[Tensor, " _"]) -> Int[Tensor, " nodes"]:
    """The labels of some nodes, and -1 for all others."""
    labels, ids = torch.full_like(graph.labels, -1), torch.cat(parts)
    labels[ids] = graph.labels[ids]
    return labels


def one_hot_labels(
    task: Task, known: Int[Tensor, " known"]
) -> Float[Tensor, "nodes classes"]:
    """One-hot labels of the known nodes; rows of other nodes are 0."""
    one_hot = torch.zeros(task.graph.num_nodes, task.graph.num_classes)
    labels = task.graph.labels[known]
    one_hot[known] = F.one_hot(labels, task.graph.num_classes).float()
    return one_hot
