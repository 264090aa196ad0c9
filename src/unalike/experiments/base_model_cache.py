"""Cache of the base models of Correct & Smooth, which many configurations share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import torch

from unalike.data.task import Solution, Task
from unalike.datasets import GraphSource
from unalike.methods.base import Method, TrainedMethod
from unalike.methods.correct_and_smooth import CorrectAndSmooth
from unalike.progress import NO_PROGRESS, Progress

MAX_CACHE_BYTES = 2**30
"""Scores of base models in the cache; the oldest are evicted first."""

BaseKey = tuple[TrainedMethod, str, str]


@dataclass(eq=False)
class BaseModelCache:
    """The scores of trained base models on one dataset, without their weights."""

    dataset: GraphSource | None = None
    cached: dict[BaseKey, list[Solution]] = field(default_factory=dict)

    def for_dataset(self, dataset: GraphSource) -> BaseModelCache:
        """The cache for a dataset; scores on any other dataset are dropped."""
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
        """Solve tasks as the method does alone, with a base model from the cache."""
        if not isinstance(method, CorrectAndSmooth):
            return method.solve_all(tasks, device=device, progress=progress)
        base = method.base
        # Random numbers depend on the other runs of the stack, so that a base model
        # is used again only for all tasks together.
        key = (base, str(device), tasks_hash(tasks))
        if key not in self.cached:
            self.cached[key] = base.solve_all(tasks, device=device, progress=progress)
        trained = self.cached[key]
        self.evict_oldest()
        return method.postprocess(tasks, trained, device=device, progress=progress)

    def evict_oldest(self) -> None:
        """Drop the oldest scores while the cache is larger than its limit."""
        sizes = {
            key: sum(solution.scores.nbytes for solution in solutions)
            for key, solutions in self.cached.items()
        }
        total = sum(sizes.values())
        for key, size in sizes.items():
            if total > MAX_CACHE_BYTES:
                del self.cached[key]
                total -= size


def tasks_hash(tasks: Sequence[Task]) -> str:
    """The hash of the seeds, train ids and valid ids of tasks on one dataset."""
    digest = sha256()
    for task in tasks:
        digest.update(f"{task.seed} {len(task.train)} ".encode())
        for ids in (task.train, task.valid):
            digest.update(ids.numpy().tobytes())
    return digest.hexdigest()
