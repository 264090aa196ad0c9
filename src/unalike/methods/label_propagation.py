"""Label propagation along one or two hops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from unalike.data.task import Solution, Task, one_hot_labels
from unalike.methods.base import Method
from unalike.nn.normalized_adjacency import GCNNorm
from unalike.progress import NO_PROGRESS, Progress
from unalike.training.checkpoint import Checkpoint


@dataclass(frozen=True, kw_only=True)
class LabelPropagation(Method):
    """F = α Â^hops F + (1 − α) Y, repeated; Y are the one-hot labels of train nodes."""

    paper = (
        "Zhou et al. 2003, https://papers.nips.cc/paper/2506; "
        "two hops: Peel 2017, https://doi.org/10.1137/1.9781611974973.49"
    )
    suits = "there are no features, and neighbours (or theirs, with --hops 2) agree"

    alpha: float = 0.1
    """Weight α of neighbours; the paper tries .01, .1, .25, .5, .75, .9 and .99."""
    hops: int = 1
    """Hops of each step; the paper tries 1 and 2."""
    steps: int = 50
    """Iterations."""
    symmetrised: bool = True
    """Propagate along both directions of directed edges, as in the paper's code."""

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
        a_hat = GCNNorm.of(graph.adjacency.to(device))
        progress.stage("propagating labels", len(tasks), "splits")
        solutions = []
        for task in tasks:
            f = y = one_hot_labels(task, task.train).to(device)
            for _ in range(self.steps):
                f = self.alpha * a_hat.power(self.hops, f) + (1 - self.alpha) * y
            solutions.append(Solution(f.cpu(), is_probability=True))
            progress.advance(1)
        return solutions
