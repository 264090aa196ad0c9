"""Directions: which ends of a node's edges a row-wise method looks at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from torch import nn

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Graph
from unalike.data.task import Solution, Task
from unalike.methods.plain_module import Allowed, Trial, for_batches, is_foreign
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


# Base classes of methods: hyperparameters, and how to solve tasks with them.


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

    paper: ClassVar[str] = ""
    family: ClassVar[str] = "closed form"
    column_parallel: ClassVar[bool] = False
    """Can several processes each hold some columns of the adjacency?"""
    stackable_options: ClassVar[frozenset[str]] = frozenset()
    """Options in which the runs of one stack may differ; the others are its shape."""

    @property
    def data_parallel(self) -> bool:
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
    """A method that trains a module with AdamW.

    A subclass has `build_module`; its fields are the hyperparameters.
    """

    stackable_options: ClassVar[frozenset[str]] = frozenset(
        {"lr", "weight_decay", "dropout"}
    )
    row_wise: ClassVar[bool] = False
    """Do the logits of a node depend on its own row alone in evaluation?"""

    training: Training = field(default_factory=Training)
    batching: Sampler = field(default_factory=FullBatch)

    @abstractmethod
    def build_module(self, graph: Graph) -> nn.Module:
        """An untrained module for a prepared graph.

        Its `forward` takes a batch, or what `plain_module.ARGUMENTS` names.
        """

    def network(self, graph: Graph) -> nn.Module:
        """The module of `build_module`, with a `forward` that takes a batch."""
        return for_batches(self.build_module(graph))

    def prepare(self, graph: Graph) -> Graph:
        """Preprocessing that is done once, before training."""
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
    column_parallel: ClassVar[bool] = True
    row_wise: ClassVar[bool] = True

    batching: RowBatching = field(default_factory=FullBatch)
    """What a step learns from: the whole graph, or some of its rows."""


@dataclass(frozen=True, kw_only=True)
class MessagePassingMethod(TrainedMethod):
    """A method whose scores of a node depend on its neighbours' rows too."""

    family: ClassVar[str] = "message passing"

    batching: SubgraphBatching = field(default_factory=FullBatch)
    """What a step learns from: the whole graph, or a part with its inner edges."""

    @property
    def data_parallel(self) -> bool:
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
    world = World.current()
    prepared = methods[0].prepare(tasks[0].graph)
    if methods[0].column_parallel:
        prepared = shard_columns(prepared, world)
    with torch.random.fork_rng():
        network = methods[0].network(prepared)
        row_wise = methods[0].row_wise
        size = world.all_min(
            max_stacked_runs(network, prepared, device, row_wise=row_wise)
        )
    alike = [replace(method, training=methods[0].training) for method in methods]
    allowed = Allowed(dict.fromkeys(alike, ()))
    if is_foreign(network):
        half = device.type == "cuda" and methods[0].training.precision == "bf16"
        trial = Trial(prepared, device, half, row_wise, type(methods[0]).__name__)
        builders = {one: one.network for one in alike}
        allowed = trial.allowed(builders, min(size, len(tasks)))
    del network
    for note in allowed.notes:
        say_once(note, progress)
    runs = [
        FitSpec(
            method.network,
            replace(task, graph=replace(prepared, labels=task.graph.labels)),
            method.training,
            method.batching,
            row_wise=row_wise,
            capturable=allowed.capturable,
        )
        for method, task in zip(methods, tasks, strict=True)
    ]
    size = size if allowed.stackable else 1
    constants = [allowed.constants[one] for one in alike]
    solutions: dict[int, Solution] = {}
    kept: list[Checkpoint] = []
    for members in group_runs(runs, size, constants):
        if checkpoint is not None:
            kept.append(checkpoint.for_stack(members[0]))
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


SAID: set[str] = set()
"""Notes that a user of this process has seen."""


def say_once(note: str, progress: Progress) -> None:
    """Tell a note through the progress channel, the first time only."""
    if note not in SAID:
        SAID.add(note)
        progress.stage(note, None, "")


def group_runs(
    runs: Sequence[FitSpec], size: int, constants: Sequence[Hashable]
) -> Iterator[list[int]]:
    """Runs that train in one stack: modules with equal constants, at most `size`.

    They share a split where the sampler looks at the train nodes.
    """
    together: dict[Hashable, list[int]] = defaultdict(list)
    for number, (run, constant) in enumerate(zip(runs, constants, strict=True)):
        split = run.task.train.numpy().tobytes()
        key = split if run.batching.depends_on_train else b""
        together[key, constant].append(number)
    for members in together.values():
        for begin in range(0, len(members), size):
            yield members[begin : begin + size]
