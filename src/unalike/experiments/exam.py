"""Exam: some splits of a dataset, as tasks to solve and as answers to grade by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from unalike.datasets import Source, find
from unalike.errors import UserError
from unalike.experiments.answers import Answers
from unalike.experiments.fingerprint import fingerprint
from unalike.experiments.machine import device_name, peak_memory_mb, versions
from unalike.experiments.result import Result
from unalike.experiments.runs import Runs
from unalike.experiments.view import class_names, unseen, view_of
from unalike.graph import Graph
from unalike.methods import name_of
from unalike.methods.method import Method
from unalike.metrics import Metric
from unalike.options import options_of
from unalike.progress import SILENT, Progress
from unalike.split import PARTS, Split
from unalike.task import Curve, Solution, Task


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

    def tasks(self, *, keep: bool = False) -> list[Task]:
        """A task for each split, with a seed of its own."""
        view, metric = view_of(self.dataset), self.dataset.metric
        tasks = [
            view.weigh(Task.hide(self.graph, split, metric, self.seed + number))
            for number, split in self.splits.items()
        ]
        return [replace(task, keep=keep) for task in tasks]

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

    def identity(self, method: Method, device: str) -> dict[str, Any]:
        """What tells which runs these are."""
        return {**self.facts(method, device), "splits": list(self.splits)}

    def digest(self) -> str:
        """A hash of the graph and its splits."""
        return fingerprint(unseen(self.dataset))

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
            **self.facts(method, device),
            split=split,
            **grade(solution, self.graph, self.splits[split], metric),
            **story(solution.curve, spent),
            peak_memory_mb=peak_memory_mb(device),
            answers=self.answers(split, solution),
        )

    def answers(self, split: int, solution: Solution) -> Answers:
        """What a solution says of the test nodes of a split."""
        ids = self.splits[split].test
        return Answers.of(
            solution.scores[ids],
            self.graph.labels[ids],
            log_odds=not solution.shares,
            classes=class_names(self.dataset),
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
    check_classes(metric, graph, told)
    for part in ("valid", "test"):
        labels = graph.labels[getattr(split, part)]
        flat = torch.zeros(len(labels), graph.num_classes)
        if not metric.grade(flat, labels, torch.ones(len(labels))).isfinite():
            raise UserError(
                f"The {part} nodes of {told} cannot be graded by {metric.name}: "
                f"there are {len(labels)}, of {len(labels.unique())} classes."
            )


def check_classes(metric: Metric, graph: Graph, told: str) -> None:
    """Refuse a metric that cannot grade so many classes."""
    if metric.most_classes is not None and graph.num_classes > metric.most_classes:
        raise UserError(
            f"{metric.name} is for {metric.most_classes} classes; "
            f"{told} has {graph.num_classes}."
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
