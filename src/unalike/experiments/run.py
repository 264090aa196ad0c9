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
    place = place or Place()
    dataset = find(dataset) if isinstance(dataset, str) else dataset
    graph, known = dataset.prepared(progress=place.progress), dataset.splits()
    wanted = choose(splits, len(known), dataset.name)
    for number in wanted:
        check(known[number], graph, dataset.metric, f"split {number} of {dataset.name}")
    tasks = [Task.hide(graph, known[i], dataset.metric, seed + i) for i in wanted]
    facts: dict[str, Any] = {
        "dataset": dataset.name,
        "method": name_of(method),
        "options": options_of(method),
        "metric": dataset.metric.name,
        "seed": seed,
        "device": device_name(place.device),
        "versions": versions(),
    }
    key = json.dumps({**facts, "splits": wanted}, sort_keys=True)
    began = time.perf_counter()
    solutions = solve(method, tasks, key, place)
    spent = (time.perf_counter() - began) / len(tasks)
    return [
        Result(
            **facts,
            split=number,
            **grade(solution, graph, known[number], dataset.metric),
            **story(solution.curve, spent),
            peak_memory_mb=peak_memory_mb(place.device),
        )
        for number, solution in zip(wanted, solutions, strict=True)
    ]


def solve(
    method: Method, tasks: Sequence[Task], key: str, place: Place
) -> list[Solution]:
    """All tasks at once where the method trains, one after the other elsewhere."""
    if not isinstance(method, Trained):
        return [method.solve(task, device=place.device) for task in tasks]
    keep = None if place.checkpoint is None else Checkpoint(place.checkpoint, key)
    return solve_stack(
        [method] * len(tasks),
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
