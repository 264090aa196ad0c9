"""The method of that name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from unalike.data.task import Solution, Task, one_hot_train_labels
from unalike.methods.base import Method
from unalike.nn.normalized_adjacency import GCNNorm
from unalike.progress import NO_PROGRESS, Progress
from unalike.training.checkpoint import Checkpoint


@dataclass(frozen=True, kw_only=True)
class LabelPropagation(Method):
    """F = α Â^hops F + (1 − α) Y, many times, with Y the labels of the train nodes."""

    paper = (
        "Zhou et al. 2003, https://papers.nips.cc/paper/2506; "
        "two hops: Peel 2017, https://doi.org/10.1137/1.9781611974973.49"
    )

    alpha: float = 0.1
    """What neighbours count for; the paper tries .01, .1, .25, .5, .75, .9 and .99."""
    hops: int = 1
    """Propagations in each step; the paper tries 1 and 2."""
    steps: int = 50
    """Repetitions."""
    symmetrised: bool = True
    """Labels flow both ways along directed edges, as in the paper's program."""

    def solve_all(
        self,
        tasks: Sequence[Task],
        *,
        device: torch.device | str = "cpu",
        progress: Progress = NO_PROGRESS,
        checkpoint: Checkpoint | None = None,
    ) -> list[Solution]:
        graph = tasks[0].graph
        graph = graph.to_undirected() if self.symmetrised else graph
        adjacency = GCNNorm.of(graph.adjacency.to(device))
        progress.stage("spreading labels", len(tasks), "splits")
        solutions = []
        for task in tasks:
            scores = known = one_hot_train_labels(task).to(device)
            for _ in range(self.steps):
                flown = adjacency.power(self.hops, scores)
                scores = self.alpha * flown + (1 - self.alpha) * known
            solutions.append(Solution(scores.cpu(), is_probability=True))
            progress.advance(1)
        return solutions
