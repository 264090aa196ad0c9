"""Correct and Smooth: propagate errors, then labels, after a method is trained."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from unalike.data.adjacency import Adjacency
from unalike.data.task import Solution, Task, one_hot_labels
from unalike.methods.base import Method, TrainedMethod
from unalike.methods.mlp import MLP
from unalike.methods.registry import TRAINED_METHODS
from unalike.nn.normalized_adjacency import Norm, NormalizedAdjacency
from unalike.options import one_of
from unalike.progress import NO_PROGRESS, Progress
from unalike.training.checkpoint import Checkpoint

if TYPE_CHECKING:
    AnyTrained = TrainedMethod
else:
    AnyTrained = one_of(TRAINED_METHODS)

Scaling = Literal["auto", "fixed"]
Probabilities = Float[Tensor, "nodes runs classes"]

MAX_SCALE = 1000
"""Autoscale leaves an error as it is if it would be multiplied by more than this."""


@dataclass(frozen=True, kw_only=True)
class CorrectAndSmooth(Method):
    """R = α A R + (1 − α) (Y − P) corrects P; S = α A S + (1 − α) P smooths it."""

    paper = "Huang et al. 2021, https://arxiv.org/abs/2010.13993"
    suits = "neighbours agree and a method without edges is already good"
    family: ClassVar[str] = "after training"
    uses_class_weights: ClassVar[bool] = True

    correct_alpha: float = 0.5
    """Weight α of neighbours in the propagation of errors; the paper tunes it."""
    smooth_alpha: float = 0.5
    """Weight α of neighbours in the propagation of labels; the paper tunes it."""
    correct_by: Norm = "both"
    """Normalisation for errors: D^-1/2 A D^-1/2, D^-1 A (rows) or A D^-1 (columns)."""
    smooth_by: Norm = "both"
    """Normalisation for labels."""
    scaling: Scaling = "auto"
    """Scale errors to their mean size on train nodes, or by a fixed factor."""
    scale: float = 1.0
    """The fixed factor; the paper tunes it between .1 and 10."""
    flow_hops: int = 1
    """Hops of each propagation step; the paper tries 1 and 2."""
    flow_steps: int = 50
    """Propagation steps of errors, and again of labels."""
    symmetrised: bool = True
    """Propagate along both directions of directed edges, as in the paper's code."""
    base: AnyTrained = field(default_factory=lambda: MLP(hidden=256))
    """The method that is trained first; P is the softmax of its logits."""

    @property
    def needs_features(self) -> bool:
        return self.base.needs_features

    @property
    def uses_edge_weights(self) -> bool:
        return self.base.uses_edge_weights

    def solve_all(
        self,
        tasks: Sequence[Task],
        *,
        device: torch.device | str = "cpu",
        progress: Progress = NO_PROGRESS,
        checkpoint: Checkpoint | None = None,
    ) -> list[Solution]:
        trained = self.base.solve_all(
            tasks, device=device, progress=progress, checkpoint=checkpoint
        )
        return self.postprocess(tasks, trained, device=device, progress=progress)

    def postprocess(
        self,
        tasks: Sequence[Task],
        trained: Sequence[Solution],
        *,
        device: torch.device | str = "cpu",
        progress: Progress = NO_PROGRESS,
    ) -> list[Solution]:
        """Correct and smooth the solutions of the base method."""
        start = time.perf_counter()
        inputs = SmoothingInputs.of(tasks, trained, undirected=self.symmetrised)
        scores = self.correct_and_smooth(inputs.to(device), progress).cpu()
        elapsed = (time.perf_counter() - start) / len(tasks)
        return [
            Solution(
                scores[:, run],
                solution.curve
                and replace(solution.curve, seconds=solution.curve.seconds + elapsed),
                is_probability=True,
            )
            for run, solution in enumerate(trained)
        ]

    @torch.no_grad()
    def correct_and_smooth(
        self, inputs: SmoothingInputs, progress: Progress = NO_PROGRESS
    ) -> Probabilities:
        """The probabilities of all nodes, corrected and then smoothed."""
        progress.stage("propagating", 2 * self.flow_steps, "steps")
        mask, errors, fixed = inputs.train_mask, inputs.errors, self.scaling == "fixed"

        def bound_errors(x: Probabilities) -> Probabilities:
            # With a fixed factor, the errors of train nodes stay as they are.
            return torch.where(mask, errors, x) if fixed else x.clamp(-1, 1)

        adjacency = NormalizedAdjacency.of(inputs.adjacency, self.correct_by)
        propagated = self.propagate(
            adjacency, errors, self.correct_alpha, bound_errors, progress
        )
        scale = self.scale if fixed else autoscale(inputs, propagated)
        corrected = inputs.probabilities + scale * propagated
        start = torch.where(mask, inputs.train_one_hot, corrected)
        adjacency = NormalizedAdjacency.of(inputs.adjacency, self.smooth_by)
        return self.propagate(
            adjacency, start, self.smooth_alpha, lambda x: x.clamp(0, 1), progress
        )

    def propagate(
        self,
        adjacency: NormalizedAdjacency,
        start: Probabilities,
        alpha: float,
        after_step: Callable[[Probabilities], Probabilities],
        progress: Progress,
    ) -> Probabilities:
        """Repeat x = after_step(α A^hops x + (1 − α) x₀) from x = x₀ = start."""
        x = x0 = start.flatten(1)
        for _ in range(self.flow_steps):
            for _ in range(self.flow_hops):
                x = adjacency @ x
            x = after_step(torch.lerp(x0, x, alpha).view_as(start)).flatten(1)
            progress.advance(1)
        return x.view_as(start)


@dataclass(frozen=True, eq=False)
class SmoothingInputs:
    """Predictions and train labels of several runs, which are propagated at once."""

    adjacency: Adjacency
    probabilities: Probabilities
    """P, the softmax of the logits."""
    train_one_hot: Probabilities
    """Y, the one-hot labels of train nodes; 0 elsewhere."""
    train_mask: Bool[Tensor, "nodes runs 1"]

    @classmethod
    def of(
        cls, tasks: Sequence[Task], solutions: Sequence[Solution], *, undirected: bool
    ) -> SmoothingInputs:
        """The inputs from solutions of tasks on one graph."""
        graph = tasks[0].graph.to_undirected() if undirected else tasks[0].graph
        one_hot = torch.stack([one_hot_labels(task, task.train) for task in tasks], 1)
        return cls(
            adjacency=graph.adjacency,
            probabilities=torch.stack([s.scores.softmax(1) for s in solutions], 1),
            train_one_hot=one_hot,
            train_mask=one_hot.bool().any(2, keepdim=True),
        )

    @property
    def errors(self) -> Probabilities:
        """Y − P on train nodes, 0 elsewhere."""
        return torch.where(
            self.train_mask, self.train_one_hot - self.probabilities, 0.0
        )

    def to(self, device: torch.device | str) -> SmoothingInputs:
        return SmoothingInputs(*(part.to(device) for part in vars(self).values()))


def autoscale(
    inputs: SmoothingInputs, propagated: Probabilities
) -> Float[Tensor, "nodes runs 1"]:
    """Factors that scale errors to the mean size of those on train nodes."""
    mean_size = inputs.errors.abs().sum((0, 2)) / inputs.train_mask.sum((0, 2))
    scale = mean_size[:, None] / propagated.abs().sum(2, keepdim=True)
    # Where no error arrived, the scale is infinite or 0 / 0.
    return torch.where(scale <= MAX_SCALE, scale, 1.0)
