"""Bases: what was trained for correct and smooth, kept for all that is tried on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import torch

from unalike.datasets import Source
from unalike.methods.correct_and_smooth import CorrectAndSmooth
from unalike.methods.method import Method, Trained
from unalike.progress import SILENT, Progress
from unalike.task import Solution, Task

Key = tuple[Trained, str, str]

MOST_BYTES = 2**30
"""Scores that may be kept; those of the base that was trained first go first."""


@dataclass(eq=False)
class Bases:
    """The scores of trained bases on one dataset, without their weights."""

    dataset: Source | None = None
    known: dict[Key, list[Solution]] = field(default_factory=dict)

    def on(self, dataset: Source) -> Bases:
        """The bases of a dataset; those of any other are let go."""
        if self.dataset is not dataset:
            self.dataset, self.known = dataset, {}
        return self

    def solve(
        self,
        method: Method,
        tasks: Sequence[Task],
        *,
        device: torch.device | str = "cpu",
        progress: Progress = SILENT,
    ) -> list[Solution]:
        """Solve tasks as a method does alone, on a base that may be known already."""
        if not isinstance(method, CorrectAndSmooth):
            return method.solve_all(tasks, device=device, progress=progress)
        base = method.base
        # Chance depends on what trains beside a run: all tasks are known, or none is.
        key = (base, str(device), digest_of(tasks))
        if key not in self.known:
            self.known[key] = base.solve_all(tasks, device=device, progress=progress)
        trained = self.known[key]
        self.make_room()
        return method.around(tasks, trained, device=device, progress=progress)

    def make_room(self) -> None:
        """Let go of the oldest scores where there are too many."""
        sizes = {key: bytes_of(found) for key, found in self.known.items()}
        total = sum(sizes.values())
        for key, size in sizes.items():
            if total > MOST_BYTES:
                del self.known[key]
                total -= size


def bytes_of(found: Sequence[Solution]) -> int:
    """The memory that scores take."""
    return sum(one.scores.nbytes for one in found)


def digest_of(tasks: Sequence[Task]) -> str:
    """A hash of what tells the tasks of one dataset apart: seeds, train and valid."""
    digest = sha256()
    for task in tasks:
        digest.update(f"{task.seed} {len(task.train)} ".encode())
        for ids in (task.train, task.valid):
            digest.update(ids.numpy().tobytes())
    return digest.hexdigest()
