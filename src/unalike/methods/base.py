"""Base classes of methods, and training of many tasks in stacks of runs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Graph
from unalike.data.task import Solution, Task
from unalike.device import fork_rng
from unalike.errors import UserError
from unalike.methods.plain_module import (
    MAX_DENSE_NUMEL,
    Allowed,
    Trial,
    for_batches,
    is_foreign,
)
from unalike.options import check_options, one_of, options_of, with_options
from unalike.progress import NO_PROGRESS, Progress
from unalike.samplers import SAMPLERS
from unalike.samplers.base import FullBatch, Sampler
from unalike.samplers.rows import RowSampler
from unalike.system import free_memory
from unalike.training.checkpoint import Checkpoint
from unalike.training.distributed import World, shard_columns
from unalike.training.loop import FitSpec, fit
from unalike.training.memory import halve_on_out_of_memory
from unalike.training.stack import max_stacked_runs
from unalike.training.state import Training

Directions = Literal["out", "in", "both", "undirected"]

DIRECTIONS: dict[Directions, Callable[[Adjacency], Adjacency]] = {
    "out": lambda a: a,
    "in": lambda a: a.T,
    "both": lambda a: a.hstack(a.T),
    "undirected": lambda a: a.to_undirected(),
}


def with_directions(graph: Graph, directions: Directions) -> Graph:
    """The graph with the adjacency A, A^T, [A; A^T] or max(A, A^T)."""
    return replace(graph, adjacency=DIRECTIONS[directions](graph.adjacency))


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
    """A method of node classification. Its fields are its hyperparameters."""

    paper: ClassVar[str] = ""
    suits: ClassVar[str] = ""
    """Where it is worth trying, as a clause after "where"."""
    family: ClassVar[str] = "closed form"
    column_parallel: ClassVar[bool] = False
    """Can processes divide the columns of the adjacency among them?"""
    needs_full_graph: ClassVar[bool] = False
    """Are rows made from the full graph, so that new nodes have none?"""
    stackable_options: ClassVar[frozenset[str]] = frozenset()
    """Options in which the runs of one stack may differ; the others change shapes."""
    uses_class_weights: ClassVar[bool] = False
    """Does its loss weigh train nodes by their class?"""

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def data_parallel(self) -> bool:
        """Can processes divide the batches of an epoch among them?"""
        return False

    @property
    def splits_are_independent(self) -> bool:
        """Is nothing shared by the splits of a sweep, so that workers divide them?"""
        return False

    @property
    def needs_features(self) -> bool:
        """Does it learn nothing from a graph without features?"""
        return False

    @property
    def uses_edge_weights(self) -> bool:
        """Do weights of edges count, if it uses edges at all?"""
        return True

    def solve(self, task: Task, *, device: torch.device | str = "cpu") -> Solution:
        """Train on the labels of a task and score every node."""
        (solution,) = self.solve_all([task], device=device)
        solution.raise_if_failed()
        return solution

    @abstractmethod
    def solve_all(
        self,
        tasks: Sequence[Task],
        *,
        device: torch.device | str = "cpu",
        progress: Progress = NO_PROGRESS,
        checkpoint: Checkpoint | None = None,
    ) -> list[Solution]:
        """Solve tasks on one graph; what they have in common is done once.

        A task whose training diverges has a solution with an `error`.
        """


AnyMethod = TypeVar("AnyMethod", bound=Method)


@dataclass(frozen=True, kw_only=True)
class TrainedMethod(Method):
    """A method that trains a module with AdamW.

    A subclass has `build_module`; its fields are the hyperparameters.
    """

    stackable_options: ClassVar[frozenset[str]] = frozenset(
        {"lr", "weight_decay", "dropout"}
    )
    uses_class_weights: ClassVar[bool] = True
    row_wise: ClassVar[bool] = False
    """Do the logits of a node depend on its own row alone in evaluation?"""
    capturable: ClassVar[bool] = True
    """Can an epoch be captured as a CUDA graph? Not where a step waits for the GPU."""

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

    def network_on_meta(self, graph: Graph) -> nn.Module:
        """The module on the meta device: shapes of weights that take no memory.

        The random generators stay as they are.
        """
        with fork_rng():
            try:
                with torch.device("meta"):
                    return self.network(graph)
            except Exception:
                # A module of the user may read its tensors; those on meta have no data.
                return self.network(graph)

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
        return train_stacks(
            [self] * len(tasks),
            tasks,
            device=device,
            progress=progress,
            checkpoint=checkpoint,
        )


@dataclass(frozen=True, kw_only=True)
class RowWiseMethod(TrainedMethod):
    """A method that scores a node by its own row of adjacency and features."""

    family: ClassVar[str] = "row-wise"
    column_parallel: ClassVar[bool] = True
    row_wise: ClassVar[bool] = True

    batching: RowBatching = field(default_factory=FullBatch)
    """Batch of a training step: the full graph, or some of its rows."""


@dataclass(frozen=True, kw_only=True)
class PropagatedFeaturesMethod(TrainedMethod):
    """A method that scores a node by its row of features that were propagated once."""

    family: ClassVar[str] = "row-wise"
    row_wise: ClassVar[bool] = True
    needs_full_graph: ClassVar[bool] = True
    needs_features = True

    batching: RowBatching = field(default_factory=FullBatch)
    """Batch of a training step: all nodes, or some of them."""

    @abstractmethod
    def propagate(
        self, graph: Graph, x: Float[Tensor, "nodes features"]
    ) -> list[Float[Tensor, "nodes features"]]:
        """The propagated forms of the features, of equal size."""

    @property
    @abstractmethod
    def num_propagated(self) -> int:
        """The number of matrices that `propagate` returns."""

    def prepare(self, graph: Graph) -> Graph:
        """The graph without edges, and with all propagated features side by side."""
        numel = graph.num_nodes * graph.num_features * self.num_propagated
        free = free_memory(torch.device("cpu"))
        if 4 * numel > MAX_FEATURES_SHARE * free:
            raise UserError(
                f"{self.num_propagated} propagated copies of {graph.num_nodes:,} x "
                f"{graph.num_features:,} features need {4 * numel / 1e9:,.1f} GB; "
                f"{free / 1e9:,.1f} GB are free. Choose fewer --hops."
            )
        x = graph.features.to_dense().float()
        # Rows without a graph have no neighbours to sum over.
        is_square = graph.adjacency.num_rows == graph.adjacency.num_cols
        matrices = self.propagate(graph, x) if is_square else [x] * self.num_propagated
        features = torch.cat(matrices, 1)
        return replace(without_edges(graph), features=features)


MAX_FEATURES_SHARE = 0.4
"""Fraction of free memory that propagated features may take."""


def with_dense_features(graph: Graph) -> Graph:
    """The graph with dense features, which dropout needs; raises if they are large."""
    if not isinstance(graph.features, Adjacency):
        return graph
    if math.prod(graph.features.shape) > MAX_DENSE_NUMEL:
        raise UserError(
            f"Features of {graph.num_nodes} x {graph.num_features} are too many to "
            "be made dense; choose --no-drop-features."
        )
    return replace(graph, features=graph.features.to_dense())


def require_full_batch(method: TrainedMethod) -> None:
    """Raise if a method with a weight for each node is trained on subgraphs."""
    if not isinstance(method.batching, FullBatch):
        raise UserError(
            f"{type(method).__name__} has a weight for each node of the graph: train "
            "it on the full graph."
        )


def without_edges(graph: Graph) -> Graph:
    """The graph without its edges, which batches need not copy."""
    return replace(graph, adjacency=Adjacency.empty(graph.adjacency.shape))


@dataclass(frozen=True, kw_only=True)
class MessagePassingMethod(TrainedMethod):
    """A method that scores a node by its own row and those of its neighbours."""

    family: ClassVar[str] = "message passing"
    needs_features = True

    batching: SubgraphBatching = field(default_factory=FullBatch)
    """Batch of a training step: the full graph, or a sampled subgraph."""

    @property
    def data_parallel(self) -> bool:
        return not isinstance(self.batching, FullBatch)


def as_computed_on(device: str, method: AnyMethod) -> AnyMethod:
    """The method with the precision that a device has: a CPU has no bf16."""
    computed = torch.device(device).type == "cuda"
    if computed or options_of(method).get("precision") != "bf16":
        return method
    return with_options(method, {"precision": "float32"}, type(method).__name__)


def solve_mixed(
    pairs: Sequence[tuple[Method, Task]],
    *,
    device: torch.device | str = "cpu",
    progress: Progress = NO_PROGRESS,
    checkpoint: Checkpoint | None = None,
    solve: Callable[..., list[Solution]] | None = None,
    prepared: Graph | None = None,
) -> list[Solution]:
    """Solve tasks on one graph, each by its own method, in stacks if they are trained.

    Tasks that share features and metric are solved together: a stack has one of each.
    Other methods are solved by `solve(method, tasks)`, or by their own `solve_all`.
    """
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for index, (method, task) in enumerate(pairs):
        kind = TrainedMethod if isinstance(method, TrainedMethod) else method
        groups[kind, id(task.graph.features), id(task.metric)].append(index)
    solutions: dict[int, Solution] = {}
    for group in groups.values():
        own = checkpoint
        if checkpoint is not None and len(groups) > 1:
            own = checkpoint.for_stack(group[0])
        method, tasks = pairs[group[0]][0], [pairs[index][1] for index in group]
        if isinstance(method, TrainedMethod):
            members = [pairs[index][0] for index in group]
            methods = [one for one in members if isinstance(one, TrainedMethod)]
            solve_all = partial(
                train_stacks, methods, checkpoint=own, prepared=prepared
            )
        elif solve is not None:
            solve_all = partial(solve, method)
        else:
            solve_all = partial(method.solve_all, checkpoint=own)
        solved = solve_all(tasks, device=device, progress=progress)
        solutions.update(zip(group, solved, strict=True))
    return [solutions[index] for index in range(len(pairs))]


def train_stacks(
    methods: Sequence[TrainedMethod],
    tasks: Sequence[Task],
    *,
    device: torch.device | str = "cpu",
    progress: Progress = NO_PROGRESS,
    checkpoint: Checkpoint | None = None,
    prepared: Graph | None = None,
) -> list[Solution]:
    """Train methods of equal shapes on tasks of one graph, in stacks that fit.

    `prepared` is the graph after `prepare`, if the caller has it already.
    """
    device = torch.device(device)
    world = World.current()
    row_wise = methods[0].row_wise
    if prepared is None:
        prepared = methods[0].prepare(tasks[0].graph)
    if methods[0].column_parallel:
        prepared = shard_columns(prepared, world)
    module = methods[0].network_on_meta(prepared)
    size = world.all_min(max_stacked_runs(module, prepared, device, row_wise=row_wise))
    alike = [replace(method, training=methods[0].training) for method in methods]
    allowed = Allowed(dict.fromkeys(alike, ()))
    if is_foreign(module):
        bf16 = device.type == "cuda" and methods[0].training.precision == "bf16"
        trial = Trial(prepared, device, bf16, row_wise, type(methods[0]).__name__)
        builders = {method: method.network for method in alike}
        allowed = trial.allowed(builders, min(size, len(tasks)))
    del module
    for note in allowed.notes:
        show_once(note, progress)
    runs = [
        FitSpec(
            method.network,
            replace(task, graph=replace(prepared, labels=task.graph.labels)),
            method.training,
            method.batching,
            row_wise=row_wise,
            capturable=allowed.capturable and methods[0].capturable,
        )
        for method, task in zip(methods, tasks, strict=True)
    ]
    size = size if allowed.stackable else 1
    constants = [allowed.constants[method] for method in alike]
    solutions: dict[int, Solution] = {}
    checkpoints: list[Checkpoint] = []
    for stack in group_runs(runs, size, constants):
        if checkpoint is not None:
            checkpoints.append(checkpoint.for_stack(stack[0]))
        trained = halve_on_out_of_memory(
            fit,
            [runs[run] for run in stack],
            device=device,
            progress=progress,
            checkpoint=checkpoints[-1] if checkpoints else None,
        )
        solutions.update(zip(stack, trained, strict=True))
    for own in checkpoints:
        own.remove()
    return [solutions[run] for run in range(len(runs))]


SHOWN_NOTES: set[str] = set()
"""Notes that this process has shown."""


def show_once(note: str, progress: Progress) -> None:
    """Show a note through the progress listener, the first time only."""
    if note not in SHOWN_NOTES:
        SHOWN_NOTES.add(note)
        progress.stage(note, None, "")


def group_runs(
    runs: Sequence[FitSpec], size: int, constants: Sequence[Hashable]
) -> Iterator[list[int]]:
    """Runs that train in one stack: modules with equal constants, at most `size`.

    They have the same split if the sampler depends on the train nodes.
    """
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for index, (run, constant) in enumerate(zip(runs, constants, strict=True)):
        split = run.task.train.numpy().tobytes()
        key = split if run.batching.depends_on_train else b""
        groups[key, constant].append(index)
    for group in groups.values():
        for begin in range(0, len(group), size):
            yield group[begin : begin + size]
