"""Method: hyperparameters, and how to answer a task with them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import torch

from unalike.batchings import BATCHINGS
from unalike.batchings.batching import Batching
from unalike.batchings.full import Full
from unalike.batchings.rows import Rows
from unalike.graph import Graph
from unalike.options import one_of
from unalike.progress import SILENT, Progress
from unalike.task import Solution, Task
from unalike.training.checkpoint import Checkpoint
from unalike.training.fit import Run, fit
from unalike.training.joint import own_columns
from unalike.training.network import Network
from unalike.training.room import runs_at_once
from unalike.training.settings import Training
from unalike.training.world import World

if TYPE_CHECKING:
    RowBatching = Full | Rows
    SubgraphBatching = Batching
else:
    RowBatching = one_of({"full": Full, "rows": Rows})
    SubgraphBatching = one_of(
        {name: kind for name, kind in BATCHINGS.items() if kind is not Rows}
    )


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """A way to label the nodes of a graph. Its fields are its hyperparameters."""

    paper: ClassVar[str]
    family: ClassVar[str] = "closed form"
    divides: ClassVar[bool] = False
    """Can several processes each hold some columns of the adjacency?"""
    may_differ: ClassVar[frozenset[str]] = frozenset()
    """Options in which the runs of one stack may differ; the others are its shape."""

    @property
    def takes_turns(self) -> bool:
        """Can several processes each learn from some of its batches?"""
        return False

    def solve(self, task: Task, *, device: torch.device | str = "cpu") -> Solution:
        """Score every node, learning from the labels the task shows."""
        return self.solve_all([task], device=device)[0]

    @abstractmethod
    def solve_all(
        self,
        tasks: Sequence[Task],
        *,
        device: torch.device | str = "cpu",
        progress: Progress = SILENT,
        checkpoint: Checkpoint | None = None,
    ) -> list[Solution]:
        """Solve tasks on one graph; what they share is done once."""


@dataclass(frozen=True, kw_only=True)
class Trained(Method):
    """A method that trains a network by gradient descent."""

    may_differ: ClassVar[frozenset[str]] = frozenset({"lr", "weight_decay", "dropout"})

    training: Training = field(default_factory=Training)
    batching: Batching = field(default_factory=Full)

    @abstractmethod
    def network(self, graph: Graph) -> Network:
        """An untrained network for a prepared graph."""

    def prepare(self, graph: Graph) -> Graph:
        """Work done once, before training; it has nothing to learn."""
        return graph

    def solve_all(
        self,
        tasks: Sequence[Task],
        *,
        device: torch.device | str = "cpu",
        progress: Progress = SILENT,
        checkpoint: Checkpoint | None = None,
    ) -> list[Solution]:
        return solve_stack(
            [self] * len(tasks),
            tasks,
            device=device,
            progress=progress,
            checkpoint=checkpoint,
        )


@dataclass(frozen=True, kw_only=True)
class RowWise(Trained):
    """A method whose scores of a node depend on the node's own row alone."""

    family: ClassVar[str] = "row-wise"
    divides: ClassVar[bool] = True

    batching: RowBatching = field(default_factory=Full)
    """What a step learns from: the whole graph, or some of its rows."""


@dataclass(frozen=True, kw_only=True)
class MessagePassing(Trained):
    """A method whose scores of a node depend on its neighbours' rows too."""

    family: ClassVar[str] = "message passing"

    batching: SubgraphBatching = field(default_factory=Full)
    """What a step learns from: the whole graph, or a part with its inner edges."""

    @property
    def takes_turns(self) -> bool:
        return not isinstance(self.batching, Full)


def solve_together(
    members: Sequence[tuple[Method, Task]],
    *,
    device: torch.device | str = "cpu",
    progress: Progress = SILENT,
    solve: Callable[..., list[Solution]] | None = None,
) -> list[Solution]:
    """Solve tasks on one graph, each by its own method, in one stack if all train.

    What does not train is solved by `solve`, or by itself.
    """
    trained = [
        (method, task) for method, task in members if isinstance(method, Trained)
    ]
    if len(trained) == len(members):
        return solve_stack(
            *zip(*trained, strict=True), device=device, progress=progress
        )
    solutions: dict[int, Solution] = {}
    for method in dict.fromkeys(method for method, _ in members):
        mine = [place for place, (one, _) in enumerate(members) if one == method]
        tasks = [members[place][1] for place in mine]
        how = method.solve_all if solve is None else partial(solve, method)
        found = how(tasks, device=device, progress=progress)
        solutions.update(zip(mine, found, strict=True))
    return [solutions[place] for place in range(len(members))]


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
    world = World.here()
    prepared = methods[0].prepare(tasks[0].graph)
    if methods[0].divides:
        prepared = own_columns(prepared, world)
    runs = [
        Run(
            method.network,
            replace(task, graph=replace(prepared, labels=task.graph.labels)),
            method.training,
            method.batching,
        )
        for method, task in zip(methods, tasks, strict=True)
    ]
    with torch.random.fork_rng():
        network = methods[0].network(prepared)
        size = world.least(runs_at_once(network, prepared, device))
    solutions: dict[int, Solution] = {}
    kept: list[Checkpoint] = []
    for members in stacks(runs, size):
        if checkpoint is not None:
            kept.append(checkpoint.part(members[0]))
        found = fit(
            [runs[run] for run in members],
            device=device,
            progress=progress,
            checkpoint=kept[-1] if kept else None,
        )
        solutions.update(zip(members, found, strict=True))
    for part in kept:
        part.remove()
    return [solutions[run] for run in range(len(runs))]


def stacks(runs: Sequence[Run], size: int) -> Iterator[list[int]]:
    """Runs that train at once; they share a split where that decides on batches."""
    together: dict[bytes, list[int]] = defaultdict(list)
    for number, run in enumerate(runs):
        split = run.task.train.numpy().tobytes()
        together[split if run.batching.looks_at_train else b""].append(number)
    for members in together.values():
        for begin in range(0, len(members), size):
            yield members[begin : begin + size]
