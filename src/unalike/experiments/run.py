"""Train a method on the splits of a dataset, evaluate it, save the model of the best split."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from unalike.data.calibration import Reliability
from unalike.data.graph import Graph
from unalike.data.metrics import confusion
from unalike.data.split import Split
from unalike.data.store import StoredGraph
from unalike.data.task import Solution, Task
from unalike.datasets import GraphSource, find
from unalike.datasets.base import Dataset
from unalike.device import cpu_capability, device_name, peak_memory_mb, versions
from unalike.errors import UserError
from unalike.experiments.config import (
    base_dataset,
    class_names,
    dataset_hash,
    options_of_dataset,
)
from unalike.experiments.evaluation import (
    PredictionSummary,
    check_split_gradable,
    evaluate,
    training_history,
)
from unalike.experiments.result import Result, Runs
from unalike.inference.model import Model, check_trainable, model_from_solution
from unalike.inference.model_file import check_can_create
from unalike.methods import METHODS, name_of
from unalike.methods.base import Method, TrainedMethod, solve_mixed
from unalike.methods.correct_and_smooth import CorrectAndSmooth
from unalike.options import options_of
from unalike.progress import NO_PROGRESS, Progress
from unalike.samplers import SAMPLERS
from unalike.samplers.base import FullBatch
from unalike.samplers.rows import RowSampler
from unalike.training.checkpoint import Checkpoint
from unalike.training.distributed import World, main_process_first

# Exam: some splits of a dataset, as tasks to solve and as answers to grade by.


@dataclass(frozen=True, eq=False, kw_only=True)
class Experiment:
    """Some splits of a dataset, as tasks to solve and as answers to grade by."""

    dataset: GraphSource
    graph: Graph
    splits: dict[int, Split]
    seed: int

    @classmethod
    def load(
        cls,
        dataset: GraphSource | str,
        splits: Sequence[int] | None,
        seed: int,
        progress: Progress = NO_PROGRESS,
    ) -> Experiment:
        """The exam of some splits, or of all of them."""
        dataset = find(dataset) if isinstance(dataset, str) else dataset
        graph, known = dataset.prepared(progress=progress), dataset.splits()
        wanted = select_splits(splits, len(known), dataset.name)
        for number in wanted:
            told = f"split {number} of {dataset.name}"
            check_split_gradable(known[number], graph, dataset.metric, told)
        chosen = {number: known[number] for number in wanted}
        return cls(dataset=dataset, graph=graph, splits=chosen, seed=seed)

    def tasks(self, *, keep: bool = False) -> list[Task]:
        """A task for each split, with a seed of its own."""
        view, metric = options_of_dataset(self.dataset), self.dataset.metric
        tasks = [
            view.add_class_weights(
                Task.from_split(self.graph, split, metric, self.seed + number)
            )
            for number, split in self.splits.items()
        ]
        return [replace(task, keep=keep) for task in tasks]

    def metadata(self, method: Method, device: str) -> dict[str, Any]:
        """What the results of a method have in common."""
        return {
            "dataset": self.dataset.name,
            "method": name_of(method),
            "options": options_of(method),
            "view": options_of_dataset(self.dataset).overrides,
            "metric": self.dataset.metric.name,
            "seed": self.seed,
            "device": device_name(device),
            "versions": versions(),
        }

    def run_identity(self, method: Method, device: str) -> dict[str, Any]:
        """What tells which runs these are."""
        return {**self.metadata(method, device), "splits": list(self.splits)}

    def data_hash(self) -> str:
        """A hash of the graph and its splits."""
        return dataset_hash(base_dataset(self.dataset))

    def results(
        self, method: Method, solutions: Sequence[Solution], spent: float, device: str
    ) -> Runs:
        """The graded solutions, a result for each split."""
        each = spent / len(self.splits)
        return Runs(
            self.result(method, number, solution, each, device)
            for number, solution in zip(self.splits, solutions, strict=True)
        )

    def result(
        self, method: Method, split: int, solution: Solution, spent: float, device: str
    ) -> Result:
        """The graded solution of one split."""
        metric = self.dataset.metric
        return Result(
            **self.metadata(method, device),
            split=split,
            **evaluate(solution, self.graph, self.splits[split], metric),
            **training_history(solution.curve, spent),
            peak_memory_mb=peak_memory_mb(device),
            answers=self.answers(split, solution),
        )

    def answers(self, split: int, solution: Solution) -> PredictionSummary:
        """What a solution says of the test nodes of a split."""
        ids = self.splits[split].test
        return PredictionSummary.from_scores(
            solution.scores[ids],
            self.graph.labels[ids],
            log_odds=not solution.is_probability,
            classes=class_names(self.dataset),
        )


def select_splits(splits: Sequence[int] | None, count: int, name: str) -> list[int]:
    """The numbers of the wanted splits; all of them by default."""
    if not count:
        raise UserError(f"{name} has no splits: too few of its nodes are labelled.")
    for number in splits or ():
        if number not in range(count):
            raise UserError(
                f"{name} has no split {number}; they run from 0 to {count - 1}."
            )
    return list(range(count)) if splits is None else list(splits)


# Keeping: the model of a run's best split, with all that its graph is known by.


def check_can_save(path: Path, method: Method) -> bool:
    """Refuse before training what could not be saved after it."""
    check_can_create(path)
    check_trainable(method)
    return True


def best_split(results: Sequence[Result]) -> int:
    """The place of the result with the best validation grade."""
    return max(range(len(results)), key=lambda place: results[place].valid)


def trained_model(
    method: Method, dataset: GraphSource, graph: Graph, solution: Solution
) -> Model:
    """The model behind a solution, with the names that the dataset gives."""
    source = base_dataset(dataset)
    scaled = isinstance(source, Dataset) and source.preparation.row_normalised
    return model_from_solution(
        method,
        graph,
        solution,
        stored=source if isinstance(source, StoredGraph) else None,
        name=dataset.name,
        row_normalised=scaled,
    )


# Bases: what was trained for correct and smooth, kept for all that is tried on it.


Key = tuple[TrainedMethod, str, str]

MAX_CACHE_BYTES = 2**30
"""Scores that may be kept; those of the base that was trained first go first."""


@dataclass(eq=False)
class BaseModelCache:
    """The scores of trained bases on one dataset, without their weights."""

    dataset: GraphSource | None = None
    cached: dict[Key, list[Solution]] = field(default_factory=dict)

    def for_dataset(self, dataset: GraphSource) -> BaseModelCache:
        """The bases of a dataset; those of any other are let go."""
        if self.dataset is not dataset:
            self.dataset, self.cached = dataset, {}
        return self

    def solve(
        self,
        method: Method,
        tasks: Sequence[Task],
        *,
        device: torch.device | str = "cpu",
        progress: Progress = NO_PROGRESS,
    ) -> list[Solution]:
        """Solve tasks as a method does alone, on a base that may be known already."""
        if not isinstance(method, CorrectAndSmooth):
            return method.solve_all(tasks, device=device, progress=progress)
        base = method.base
        # Chance depends on what trains beside a run: all tasks are known, or none is.
        key = (base, str(device), tasks_hash(tasks))
        if key not in self.cached:
            self.cached[key] = base.solve_all(tasks, device=device, progress=progress)
        trained = self.cached[key]
        self.evict_oldest()
        return method.postprocess(tasks, trained, device=device, progress=progress)

    def evict_oldest(self) -> None:
        """Let go of the oldest scores where there are too many."""
        sizes = {key: num_bytes(found) for key, found in self.cached.items()}
        total = sum(sizes.values())
        for key, size in sizes.items():
            if total > MAX_CACHE_BYTES:
                del self.cached[key]
                total -= size


def num_bytes(found: Sequence[Solution]) -> int:
    """The memory that scores take."""
    return sum(one.scores.nbytes for one in found)


def tasks_hash(tasks: Sequence[Task]) -> str:
    """A hash of what tells the tasks of one dataset apart: seeds, train and valid."""
    digest = sha256()
    for task in tasks:
        digest.update(f"{task.seed} {len(task.train)} ".encode())
        for ids in (task.train, task.valid):
            digest.update(ids.numpy().tobytes())
    return digest.hexdigest()


# Run: a method on the splits of a dataset, graded.


UNDIVIDED_BATCHINGS = (FullBatch, RowSampler)
"""Batchings that give processes nothing to take turns with."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Where to compute, whom to tell, and where to keep the state of training."""

    device: str = "cpu"
    progress: Progress = NO_PROGRESS
    checkpoint: Path | None = None
    model: Path | None = None
    """Where to save the model of the split with the best validation grade."""
    calibrate: bool = False
    """Does that model take the temperature of its valid nodes?"""


@dataclass(frozen=True, eq=False)
class ExperimentOutput:
    """An exam that was sat: what a method answered, before any of it is graded."""

    exam: Experiment
    method: Method
    solutions: list[Solution]
    seconds: float
    device: str

    def results(self) -> Runs:
        """The graded answers, a result for each split."""
        return self.exam.results(self.method, self.solutions, self.seconds, self.device)

    def best_model(self, *, calibrate: bool = False) -> Model:
        """The model of the split with the best validation grade."""
        best = best_split(self.results())
        exam, solution = self.exam, self.solutions[best]
        model = trained_model(self.method, exam.dataset, exam.graph, solution)
        if not calibrate:
            return model
        split = list(exam.splits.values())[best]
        warm = solution.temperature(split.valid, exam.graph.labels)
        return replace(model, temperature=warm)


def run(
    dataset: GraphSource | str,
    method: Method,
    *,
    splits: Sequence[int] | None = None,
    seed: int = 0,
    place: RunOptions | None = None,
) -> Runs:
    """Solve and grade some splits of a dataset, or all of them, in one stack."""
    return train_splits(
        dataset, method, splits=splits, seed=seed, place=place
    ).results()


def train_splits(
    dataset: GraphSource | str,
    method: Method,
    *,
    splits: Sequence[int] | None = None,
    seed: int = 0,
    place: RunOptions | None = None,
) -> ExperimentOutput:
    """Solve some splits of a dataset, or all of them, in one stack."""
    place = place or RunOptions()
    keeps = place.model is not None and check_can_save(place.model, method)
    world = World.current()
    check_can_distribute(method, world)
    with main_process_first(world):
        exam = Experiment.load(dataset, splits, seed, place.progress)
    facts = exam.run_identity(method, place.device)
    if world.size > 1:
        world.assert_equal_on_all_ranks(
            {**facts, "data": exam.data_hash(), "processor": cpu_capability()}
        )
    key = json.dumps(facts, sort_keys=True)
    keep = None if place.checkpoint is None else Checkpoint(place.checkpoint, key)
    began = time.perf_counter()
    solutions = method.solve_all(
        exam.tasks(keep=keeps),
        device=place.device,
        progress=place.progress,
        checkpoint=keep,
    )
    spent = time.perf_counter() - began
    sitting = ExperimentOutput(exam, method, solutions, spent, place.device)
    if place.model is not None and world.is_main:
        model = sitting.best_model(calibrate=place.calibrate)
        model.save(place.model)
    return sitting


def check_can_distribute(method: Method, world: World) -> None:
    """Refuse a method that cannot be divided among processes."""
    if world.size == 1 or method.column_parallel or method.data_parallel:
        return
    able = ", ".join(name for name, kind in METHODS.items() if kind.column_parallel)
    parts = ", ".join(
        name for name, kind in SAMPLERS.items() if kind not in UNDIVIDED_BATCHINGS
    )
    raise UserError(
        f"{name_of(method)} cannot be divided among {world.size} processes: it needs "
        f"the whole graph in one; those that can are {able}, and message passing with "
        f"batches: {parts}."
    )


def run_stack(
    dataset: GraphSource,
    members: Sequence[tuple[Method, int]],
    *,
    seed: int = 0,
    place: RunOptions | None = None,
    bases: BaseModelCache | None = None,
) -> Runs:
    """Methods of one shape, each on a split of its own, in one stack if they train.

    Bases that are known from earlier runs are not trained again.
    """
    place, bases = place or RunOptions(), bases or BaseModelCache()
    exam = Experiment.load(dataset, sorted({split for _, split in members}), seed)
    tasks = dict(zip(exam.splits, exam.tasks(), strict=True))
    began = time.perf_counter()
    pairs = [(method, tasks[split]) for method, split in members]
    solutions = solve_mixed(
        pairs,
        device=place.device,
        progress=place.progress,
        solve=bases.for_dataset(dataset).solve,
    )
    each = (time.perf_counter() - began) / len(members)
    return Runs(
        exam.result(method, split, solution, each, place.device)
        for (method, split), solution in zip(members, solutions, strict=True)
    )


# Assessment: how sure the answers of a sitting are, and which classes they confuse.


@dataclass(frozen=True, eq=False)
class SplitCalibration:
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


def calibrate_splits(sitting: ExperimentOutput) -> list[SplitCalibration]:
    """Assess every split of a sitting."""
    labels = sitting.exam.graph.labels
    pairs = zip(sitting.exam.splits.values(), sitting.solutions, strict=True)
    return [
        SplitCalibration(
            solution.logits[split.test],
            labels[split.test],
            solution.temperature(split.valid, labels),
        )
        for split, solution in pairs
    ]


def pooled_reliability(
    assessments: list[SplitCalibration], *, calibrated: bool
) -> Reliability:
    """The reliability over the test nodes of all splits."""
    warm = [a.scores / (a.temperature if calibrated else 1) for a in assessments]
    labels = torch.cat([a.labels for a in assessments])
    return Reliability.of(torch.cat(warm).softmax(1), labels)


def pooled_confusion(
    assessments: list[SplitCalibration],
) -> Float[Tensor, "classes classes"]:
    """Test nodes of all splits by their class (row) and their answer (column)."""
    scores = torch.cat([a.scores for a in assessments])
    labels = torch.cat([a.labels for a in assessments])
    return confusion(scores, labels, torch.ones(len(labels)))
