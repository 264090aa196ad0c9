"""Guess: what trained runs think of every node, beside what is known for sure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from unalike.adjacency import Adjacency
from unalike.task import Solution, Task

Numbers = Float[Tensor, "nodes runs classes"]


@dataclass(frozen=True, eq=False)
class Guess:
    """The runs of several tasks side by side, so that they flow in one product."""

    adjacency: Adjacency
    guessed: Numbers
    """Shares of the classes."""
    known: Numbers
    """A 1 at the class of each train node, 0 elsewhere."""
    shown: Bool[Tensor, "nodes runs 1"]
    """Is it a train node of the run?"""

    @classmethod
    def of(
        cls, tasks: Sequence[Task], solutions: Sequence[Solution], *, both_ways: bool
    ) -> Guess:
        """The guess of the solutions of some tasks on one graph."""
        graph = tasks[0].graph.symmetric() if both_ways else tasks[0].graph
        known = torch.stack([known_labels(task) for task in tasks], 1)
        return cls(
            adjacency=graph.adjacency,
            guessed=torch.stack([one.scores.softmax(1) for one in solutions], 1),
            known=known,
            shown=known.bool().any(2, keepdim=True),
        )

    @property
    def errors(self) -> Numbers:
        """What is known less what was guessed; 0 where nothing is known."""
        return torch.where(self.shown, self.known - self.guessed, 0.0)

    def to(self, device: torch.device | str) -> Guess:
        """The same guess on another device."""
        return Guess(
            self.adjacency.to(device),
            self.guessed.to(device),
            self.known.to(device),
            self.shown.to(device),
        )


def known_labels(task: Task) -> Float[Tensor, "nodes classes"]:
    """A 1 at the class of each train node, 0 elsewhere."""
    known = torch.zeros(task.graph.num_nodes, task.graph.num_classes)
    labels = task.graph.labels[task.train]
    known[task.train] = F.one_hot(labels, task.graph.num_classes).float()
    return known
