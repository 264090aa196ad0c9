"""Directions: which ends of a node's edges a row-wise method looks at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal

import torch

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Graph
from unalike.data.task import Solution, Task
from unalike.nn.module import SparseInputModule
from unalike.options import one_of
from unalike.progress import NO_PROGRESS, Progress
from unalike.samplers import SAMPLERS
from unalike.samplers.base import FullBatch, Sampler
from unalike.samplers.rows import RowSampler
from unalike.training.checkpoint import Checkpoint
from unalike.training.distributed import World, shard_columns
from unalike.training.loop import FitSpec, fit
from unalike.training.settings import Training
from unalike.training.stack import max_stacked_runs

# Directions: which ends of a node's edges a row-wise method looks at.


Directions = Literal["out", "in", "both", "undirected"]

DIRECTIONS: dict[Directions, Callable[[Adjacency], Adjacency]] = {
    "out": lambda rows: rows,
    "in": lambda rows: rows.T,
    "both": lambda rows: rows.hstack(rows.T),
    "undirected": lambda rows: rows.to_undirected(),
}


def with_directions(graph: Graph, directions: Directions) -> Graph:
    """The graph with rows that hold the wanted ends; `both` has a column for each."""
    return replace(graph, adjacency=DIRECTIONS[directions](graph.adjacency))


# Method: hyperparameters, and how to answer a task with them.


if TYPE_CHECKING:
    RowBatching = FullBatch | RowSampler
    SubgraphBatching = Sampler
else:
    RowBatching = one_of({"full": FullBatch, "rows": RowSampler})
    SubgraphBatching = one_of(
        {name: kind for name, kind in SAMPLERS.items() if kind is not RowSampler}
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
        progress: Progress = NO_PROGRESS,
        checkpoint: Checkpoint | None = None,
    ) -> list[Solution]:
        """Solve tasks on one graph; what they share is done once."""


@dataclass(frozen=True, kw_only=True)
class TrainedMethod(Method):
    """A method that trains a network by gradient descent."""

    may_differ: ClassVar[frozenset[str]] = frozenset({"lr", "weight_decay", "dropout"})

    training: Training = field(default_factory=Training)
    batching: Sampler = field(default_factory=FullBatch)

    @abstractmethod
    def network(self, graph: Graph) -> SparseInputModule:
        """An untrained network for a prepared graph."""

    def prepare(self, graph: Graph) -> Graph:
        """Work done once, before training; it has nothing to learn."""
        return graph

    def solve_all(
        self,
        tasks: Sequence[Task],
        *,
        device: torch.device | str = "cpu",
        progress: Progress = NO_PROGRESS,
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
class RowWiseMethod(TrainedMethod):
    """A method whose scores of a node depend on the node's own row alone."""

    family: ClassVar[str] = "row-wise"
    divides: ClassVar[bool] = True

    batching: RowBatching = field(default_factory=FullBatch)
    """What a step learns from: the whole graph, or some of its rows."""


@dataclass(frozen=True, kw_only=True)
class MessagePassingMethod(TrainedMethod):
    """A method whose scores of a node depend on its neighbours' rows too."""

    family: ClassVar[str] = "message passing"

    batching: SubgraphBatching = field(default_factory=FullBatch)
    """What a step learns from: the whole graph, or a part with its inner edges."""

    @property
    def takes_turns(self) -> bool:
        return not isinstance(self.batching, FullBatch)


def solve_mixed(
    members: Sequence[tuple[Method, Task]],
    *,
    device: torch.device | str = "cpu",
    progress: Progress = NO_PROGRESS,
    solve: Callable[..., list[Solution]] | None = None,
) -> list[Solution]:
    """Solve tasks on one graph, each by its own method, in one stack if all train.

    What does not train is solved by `solve`, or by itself.
    """
    trained = [
        (method, task) for method, task in members if isinstance(method, TrainedMethod)
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
    methods: Sequence[TrainedMethod],
    tasks: Sequence[Task],
    *,
    device: torch.device | str = "cpu",
    progress: Progress = NO_PROGRESS,
    checkpoint: Checkpoint | None = None,
) -> list[Solution]:
    """Solve tasks on one graph by methods of one shape, as many at once as pays."""
    device = torch.device(device)
    world = World.here()
    prepared = methods[0].prepare(tasks[0].graph)
    if methods[0].divides:
        prepared = shard_columns(prepared, world)
    runs = [
        FitSpec(
            method.network,
            replace(task, graph=replace(prepared, labels=task.graph.labels)),
            method.training,
            method.batching,
        )
        for method, task in zip(methods, tasks, strict=True)
    ]
    with torch.random.fork_rng():
        network = methods[0].network(prepared)
        size = world.least(max_stacked_runs(network, prepared, device))
    solutions: dict[int, Solution] = {}
    kept: list[Checkpoint] = []
    for members in group_runs(runs, size):
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


def group_runs(runs: Sequence[FitSpec], size: int) -> Iterator[list[int]]:
    """Runs that train at once; they share a split where that decides on batches."""
    together: dict[bytes, list[int]] = defaultdict(list)
    for number, run in enumerate(runs):
        split = run.task.train.numpy().tobytes()
        together[split if run.batching.depends_on_train else b""].append(number)
    for members in together.values():
        for begin in range(0, len(members), size):
            yield members[begin : begin + size]
