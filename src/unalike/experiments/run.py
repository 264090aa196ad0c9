"""Run: a method on the splits of a dataset, graded."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from unalike.datasets import Source, find
from unalike.errors import UserError
from unalike.experiments.fingerprint import fingerprint
from unalike.experiments.machine import (
    device_name,
    peak_memory_mb,
    processor,
    versions,
)
from unalike.experiments.result import Result
from unalike.experiments.view import Seen, view_of
from unalike.graph import Graph
from unalike.methods import METHODS, name_of
from unalike.methods.method import Method, solve_together
from unalike.metrics import Metric
from unalike.options import options_of
from unalike.progress import SILENT, Progress
from unalike.split import PARTS, Split
from unalike.task import Curve, Solution, Task
from unalike.training.checkpoint import Checkpoint
from unalike.training.world import World, one_first


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where to compute, whom to tell, and where to keep the state of training."""

    device: str = "cpu"
    progress: Progress = SILENT
    checkpoint: Path | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Exam:
    """Some splits of a dataset, as tasks to solve and as answers to grade by."""

    dataset: Source
    graph: Graph
    splits: dict[int, Split]
    seed: int

    @classmethod
    def of(
        cls,
        dataset: Source | str,
        splits: Sequence[int] | None,
        seed: int,
        progress: Progress = SILENT,
    ) -> Exam:
        """The exam of some splits, or of all of them."""
        dataset = find(dataset) if isinstance(dataset, str) else dataset
        graph, known = dataset.prepared(progress=progress), dataset.splits()
        wanted = choose(splits, len(known), dataset.name)
        for number in wanted:
            told = f"split {number} of {dataset.name}"
            check(known[number], graph, dataset.metric, told)
        chosen = {number: known[number] for number in wanted}
        return cls(dataset=dataset, graph=graph, splits=chosen, seed=seed)

    def tasks(self) -> list[Task]:
        """A task for each split, with a seed of its own."""
        return [
            Task.hide(self.graph, split, self.dataset.metric, self.seed + number)
            for number, split in self.splits.items()
        ]

    def facts(self, method: Method, device: str) -> dict[str, Any]:
        """What the results of a method have in common."""
        return {
            "dataset": self.dataset.name,
            "method": name_of(method),
            "options": options_of(method),
            "view": view_of(self.dataset).changes,
            "metric": self.dataset.metric.name,
            "seed": self.seed,
            "device": device_name(device),
            "versions": versions(),
        }

    def digest(self) -> str:
        """A hash of the graph and its splits."""
        source = self.dataset
        return fingerprint(source.source if isinstance(source, Seen) else source)

    def results(
        self, method: Method, solutions: Sequence[Solution], spent: float, device: str
    ) -> list[Result]:
        """The graded solutions, a result for each split."""
        each = spent / len(self.splits)
        return [
            self.result(method, number, solution, each, device)
            for number, solution in zip(self.splits, solutions, strict=True)
        ]

    def result(
        self, method: Method, split: int, solution: Solution, spent: float, device: str
    ) -> Result:
        """The graded solution of one split."""
        metric = self.dataset.metric
        return Result(
            **self.facts(method, device),
            split=split,
            **grade(solution, self.graph, self.splits[split], metric),
            **story(solution.curve, spent),
            peak_memory_mb=peak_memory_mb(device),
        )


def run(
    dataset: Source | str,
    method: Method,
    *,
    splits: Sequence[int] | None = None,
    seed: int = 0,
    place: Place | None = None,
) -> list[Result]:
    """Solve and grade some splits of a dataset, or all of them, in one stack."""
    place = place or Place()
    world = World.here()
    check_divides(method, world)
    with one_first(world):
        exam = Exam.of(dataset, splits, seed, place.progress)
    facts = {**exam.facts(method, place.device), "splits": list(exam.splits)}
    if world.size > 1:
        world.agree({**facts, "data": exam.digest(), "processor": processor()})
    key = json.dumps(facts, sort_keys=True)
    keep = None if place.checkpoint is None else Checkpoint(place.checkpoint, key)
    began = time.perf_counter()
    solutions = method.solve_all(
        exam.tasks(), device=place.device, progress=place.progress, checkpoint=keep
    )
    spent = time.perf_counter() - began
    return exam.results(method, solutions, spent, place.device)


def check_divides(method: Method, world: World) -> None:
    """Refuse a method that cannot be divided among processes."""
    if world.size > 1 and not method.divides:
        able = [name for name, kind in METHODS.items() if kind.divides]
        raise UserError(
            f"{name_of(method)} cannot be divided among {world.size} processes: it "
            f"needs the whole graph in one; those that can are {', '.join(able)}."
        )


def run_together(
    dataset: Source,
    members: Sequence[tuple[Method, int]],
    *,
    seed: int = 0,
    place: Place | None = None,
) -> list[Result]:
    """Methods of one shape, each on a split of its own, in one stack if they train."""
    place = place or Place()
    exam = Exam.of(dataset, sorted({split for _, split in members}), seed)
    tasks = dict(zip(exam.splits, exam.tasks(), strict=True))
    began = time.perf_counter()
    pairs = [(method, tasks[split]) for method, split in members]
    solutions = solve_together(pairs, device=place.device, progress=place.progress)
    each = (time.perf_counter() - began) / len(members)
    return [
        exam.result(method, split, solution, each, place.device)
        for (method, split), solution in zip(members, solutions, strict=True)
    ]


def choose(splits: Sequence[int] | None, count: int, name: str) -> list[int]:
    """The numbers of the wanted splits; all of them by default."""
    if not count:
        raise UserError(f"{name} has no splits: too few of its nodes are labelled.")
    for number in splits or ():
        if number not in range(count):
            raise UserError(
                f"{name} has no split {number}; they run from 0 to {count - 1}."
            )
    return list(range(count)) if splits is None else list(splits)


def check(split: Split, graph: Graph, metric: Metric, told: str) -> None:
    """Refuse a split whose validation or test nodes no scores could be graded on."""
    for part in ("valid", "test"):
        labels = graph.labels[getattr(split, part)]
        flat = torch.zeros(len(labels), graph.num_classes)
        if not metric.grade(flat, labels, torch.ones(len(labels))).isfinite():
            raise UserError(
                f"The {part} nodes of {told} cannot be graded by {metric.name}: "
                f"there are {len(labels)}, of {len(labels.unique())} classes."
            )


def grade(
    solution: Solution, graph: Graph, split: Split, metric: Metric
) -> dict[str, Any]:
    """The percentage reached on each part of a split."""
    return {
        part: 100
        * float(
            metric.grade(solution.scores[ids], graph.labels[ids], torch.ones(len(ids)))
        )
        for part in PARTS
        for ids in [getattr(split, part)]
    }


def story(curve: Curve | None, spent: float) -> dict[str, Any]:
    """What a result tells of the training behind it, or of the time it took."""
    if curve is None:
        return {"best_epoch": None, "seconds": spent, "losses": [], "grades": []}
    return {
        "best_epoch": curve.best_epoch,
        "seconds": curve.seconds,
        "losses": curve.losses,
        "grades": curve.grades,
    }
