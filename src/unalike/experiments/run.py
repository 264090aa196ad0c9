"""Run: a method on the splits of a dataset, graded."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from unalike.batchings import BATCHINGS
from unalike.batchings.full import Full
from unalike.batchings.rows import Rows
from unalike.datasets import Source
from unalike.errors import UserError
from unalike.experiments.bases import Bases
from unalike.experiments.exam import Exam
from unalike.experiments.keeping import best_of, check_wish, kept_model
from unalike.experiments.machine import processor
from unalike.experiments.runs import Runs
from unalike.methods import METHODS, name_of
from unalike.methods.method import Method, solve_together
from unalike.models.model import Model
from unalike.progress import SILENT, Progress
from unalike.task import Solution
from unalike.training.checkpoint import Checkpoint
from unalike.training.world import World, one_first

WHOLE = (Full, Rows)
"""Batchings that give processes nothing to take turns with."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where to compute, whom to tell, and where to keep the state of training."""

    device: str = "cpu"
    progress: Progress = SILENT
    checkpoint: Path | None = None
    model: Path | None = None
    """Where to save the model of the split with the best validation grade."""
    calibrate: bool = False
    """Does that model take the temperature of its valid nodes?"""


@dataclass(frozen=True, eq=False)
class Sitting:
    """An exam that was sat: what a method answered, before any of it is graded."""

    exam: Exam
    method: Method
    solutions: list[Solution]
    seconds: float
    device: str

    def results(self) -> Runs:
        """The graded answers, a result for each split."""
        return self.exam.results(self.method, self.solutions, self.seconds, self.device)

    def best_model(self, *, calibrate: bool = False) -> Model:
        """The model of the split with the best validation grade."""
        best = best_of(self.results())
        exam, solution = self.exam, self.solutions[best]
        model = kept_model(self.method, exam.dataset, exam.graph, solution)
        if not calibrate:
            return model
        split = list(exam.splits.values())[best]
        warm = solution.temperature(split.valid, exam.graph.labels)
        return replace(model, temperature=warm)


def run(
    dataset: Source | str,
    method: Method,
    *,
    splits: Sequence[int] | None = None,
    seed: int = 0,
    place: Place | None = None,
) -> Runs:
    """Solve and grade some splits of a dataset, or all of them, in one stack."""
    return sit(dataset, method, splits=splits, seed=seed, place=place).results()


def sit(
    dataset: Source | str,
    method: Method,
    *,
    splits: Sequence[int] | None = None,
    seed: int = 0,
    place: Place | None = None,
) -> Sitting:
    """Solve some splits of a dataset, or all of them, in one stack."""
    place = place or Place()
    keeps = place.model is not None and check_wish(place.model, method)
    world = World.here()
    check_divides(method, world)
    with one_first(world):
        exam = Exam.of(dataset, splits, seed, place.progress)
    facts = exam.identity(method, place.device)
    if world.size > 1:
        world.agree({**facts, "data": exam.digest(), "processor": processor()})
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
    sitting = Sitting(exam, method, solutions, spent, place.device)
    if place.model is not None and world.leads:
        model = sitting.best_model(calibrate=place.calibrate)
        model.save(place.model)
    return sitting


def check_divides(method: Method, world: World) -> None:
    """Refuse a method that cannot be divided among processes."""
    if world.size == 1 or method.divides or method.takes_turns:
        return
    able = ", ".join(name for name, kind in METHODS.items() if kind.divides)
    parts = ", ".join(name for name, kind in BATCHINGS.items() if kind not in WHOLE)
    raise UserError(
        f"{name_of(method)} cannot be divided among {world.size} processes: it needs "
        f"the whole graph in one; those that can are {able}, and message passing with "
        f"batches: {parts}."
    )


def run_together(
    dataset: Source,
    members: Sequence[tuple[Method, int]],
    *,
    seed: int = 0,
    place: Place | None = None,
    bases: Bases | None = None,
) -> Runs:
    """Methods of one shape, each on a split of its own, in one stack if they train.

    Bases that are known from earlier runs are not trained again.
    """
    place, bases = place or Place(), bases or Bases()
    exam = Exam.of(dataset, sorted({split for _, split in members}), seed)
    tasks = dict(zip(exam.splits, exam.tasks(), strict=True))
    began = time.perf_counter()
    pairs = [(method, tasks[split]) for method, split in members]
    solutions = solve_together(
        pairs,
        device=place.device,
        progress=place.progress,
        solve=bases.on(dataset).solve,
    )
    each = (time.perf_counter() - began) / len(members)
    return Runs(
        exam.result(method, split, solution, each, place.device)
        for (method, split), solution in zip(members, solutions, strict=True)
    )
