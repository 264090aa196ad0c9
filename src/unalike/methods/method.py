"""Method: hyperparameters, and how to answer a task with them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch

from unalike.graph import Graph
from unalike.progress import SILENT, Progress
from unalike.task import Solution, Task
from unalike.training.checkpoint import Checkpoint
from unalike.training.fit import Run, fit
from unalike.training.network import Network
from unalike.training.room import runs_at_once
from unalike.training.settings import Training


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """A way to label the nodes of a graph. Its fields are its hyperparameters."""

    paper: ClassVar[str]
    family: ClassVar[str] = "closed form"
    may_differ: ClassVar[frozenset[str]] = frozenset()
    """Options in which the runs of one stack may differ; the others are its shape."""

    @abstractmethod
    def solve(self, task: Task, *, device: torch.device | str = "cpu") -> Solution:
        """Score every node, learning from the labels the task shows."""


@dataclass(frozen=True, kw_only=True)
class Trained(Method):
    """A method that trains a network by gradient descent."""

    may_differ: ClassVar[frozenset[str]] = frozenset({"lr", "weight_decay", "dropout"})

    training: Training = field(default_factory=Training)

    @abstractmethod
    def network(self, graph: Graph) -> Network:
        """An untrained network for a prepared graph."""

    def prepare(self, graph: Graph) -> Graph:
        """Work done once, before training; it has nothing to learn."""
        return graph

    def solve(self, task: Task, *, device: torch.device | str = "cpu") -> Solution:
        return solve_stack([self], [task], device=device)[0]


@dataclass(frozen=True, kw_only=True)
class RowWise(Trained):
    """A method whose scores of a node depend on the node's own row alone."""

    family: ClassVar[str] = "row-wise"


@dataclass(frozen=True, kw_only=True)
class MessagePassing(Trained):
    """A method whose scores of a node depend on its neighbours' rows too."""

    family: ClassVar[str] = "message passing"


def solve_stack(
    methods: Sequence[Trained],
    tasks: Sequence[Task],
    *,
    device: torch.device | str = "cpu",
    progress: Progress = SILENT,
    checkpoint: Checkpoint | None = None,
) -> list[Solution]:
    """Solve tasks on one graph by methods of one shape, as many at once as pays."""
    device = torch.device(device)
    prepared = methods[0].prepare(tasks[0].graph)
    runs = [
        Run(
            method.network,
            replace(task, graph=replace(prepared, labels=task.graph.labels)),
            method.training,
        )
        for method, task in zip(methods, tasks, strict=True)
    ]
    with torch.random.fork_rng():
        size = runs_at_once(methods[0].network(prepared), prepared, device)
    solutions: list[Solution] = []
    kept: list[Checkpoint] = []
    for begin in range(0, len(runs), size):
        if checkpoint is not None:
            kept.append(checkpoint.part(begin))
        solutions += fit(
            runs[begin : begin + size],
            device=device,
            progress=progress,
            checkpoint=kept[-1] if kept else None,
        )
    for part in kept:
        part.remove()
    return solutions
