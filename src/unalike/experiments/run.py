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
from unalike.experiments.machine import device_name, peak_memory_mb, versions
from unalike.experiments.result import Result
from unalike.experiments.view import view_of
from unalike.graph import Graph
from unalike.methods import name_of
from unalike.methods.method import Method, Trained, solve_stack
from unalike.metrics import Metric
from unalike.options import options_of
from unalike.progress import SILENT, Progress
from unalike.split import PARTS, Split
from unalike.task import Curve, Solution, Task
from unalike.training.checkpoint import Checkpoint


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where to compute, whom to tell, and where to keep the state of training."""

    device: str = "cpu"
    progress: Progress = SILENT
    checkpoint: Path | None = None


def run(
    dataset: Source | str,
    method: Method,
    *,
    splits: Sequence[int] | None = None,
    seed: int = 0,
    place: Place | None = None,
) -> list[Result]:
    """Solve and grade some splits of a dataset, or all of them, in one stack."""
    dataset = find(dataset) if isinstance(dataset, str) else dataset
    wanted = choose(splits, len(dataset.splits()), dataset.name)
    members = [(method, number) for number in wanted]
    return run_stack(dataset, members, seed=seed, place=place)


def run_stack(
    dataset: Source,
    members: Sequence[tuple[Method, int]],
    *,
    seed: int = 0,
    place: Place | None = None,
) -> list[Result]:
    """Solve and grade splits of a dataset by methods of one shape, in one stack."""
    place = place or Place()
    graph, known = dataset.prepared(), dataset.splits()
    numbers = [number for _, number in members]
    for number in set(numbers):
        check(known[number], graph, dataset.metric, f"split {number} of {dataset.name}")
    tasks = [Task.hide(graph, known[i], dataset.metric, seed + i) for i in numbers]
    shared: dict[str, Any] = {
        "dataset": dataset.name,
        "view": view_of(dataset).changes,
        "metric": dataset.metric.name,
        "seed": seed,
        "device": device_name(place.device),
        "versions": versions(),
    }
    facts = [
        {**shared, "method": name_of(method), "options": options_of(method), "split": i}
        for method, i in members
    ]
    began = time.perf_counter()
    key = json.dumps(facts, sort_keys=True)
    solutions = solve([method for method, _ in members], tasks, key, place)
    spent = (time.perf_counter() - began) / len(tasks)
    memory = peak_memory_mb(place.device)
    return [
        Result(
            **told,
            **grade(solution, graph, known[told["split"]], dataset.metric),
            **story(solution.curve, spent),
            peak_memory_mb=memory,
        )
        for told, solution in zip(facts, solutions, strict=True)
    ]


def solve(
    methods: Sequence[Method], tasks: Sequence[Task], key: str, place: Place
) -> list[Solution]:
    """All tasks at once where the methods train, one after the other elsewhere."""
    trained = [method for method in methods if isinstance(method, Trained)]
    if len(trained) < len(methods):
        pairs = zip(methods, tasks, strict=True)
        return [method.solve(task, device=place.device) for method, task in pairs]
    keep = None if place.checkpoint is None else Checkpoint(place.checkpoint, key)
    return solve_stack(
        trained,
        tasks,
        device=place.device,
        progress=place.progress,
        checkpoint=keep,
    )


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
