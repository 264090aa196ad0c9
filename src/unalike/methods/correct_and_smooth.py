"""Guess: what trained runs think of every node, beside what is known for sure."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from unalike.data.adjacency import Adjacency
from unalike.data.task import Solution, Task, one_hot_train_labels
from unalike.errors import UserError
from unalike.methods.base import Method, TrainedMethod
from unalike.methods.mlp import MLP
from unalike.methods.registry import TRAINED_METHODS
from unalike.nn.normalized_adjacency import Norm, NormalizedAdjacency
from unalike.options import one_of
from unalike.progress import NO_PROGRESS, Progress
from unalike.training.checkpoint import Checkpoint

# Guess: what trained runs think of every node, beside what is known for sure.


Numbers = Float[Tensor, "nodes runs classes"]


@dataclass(frozen=True, eq=False)
class SmoothingInputs:
    """The runs of several tasks side by side, so that they flow in one product."""

    adjacency: Adjacency
    probabilities: Numbers
    """Shares of the classes."""
    train_one_hot: Numbers
    """A 1 at the class of each train node, 0 elsewhere."""
    train_mask: Bool[Tensor, "nodes runs 1"]
    """Is it a train node of the run?"""

    @classmethod
    def of(
        cls, tasks: Sequence[Task], solutions: Sequence[Solution], *, both_ways: bool
    ) -> SmoothingInputs:
        """The guess of the solutions of some tasks on one graph."""
        graph = tasks[0].graph.to_undirected() if both_ways else tasks[0].graph
        known = torch.stack([one_hot_train_labels(task) for task in tasks], 1)
        return cls(
            adjacency=graph.adjacency,
            probabilities=torch.stack([one.scores.softmax(1) for one in solutions], 1),
            train_one_hot=known,
            train_mask=known.bool().any(2, keepdim=True),
        )

    @property
    def errors(self) -> Numbers:
        """What is known less what was guessed; 0 where nothing is known."""
        return torch.where(
            self.train_mask, self.train_one_hot - self.probabilities, 0.0
        )

    def to(self, device: torch.device | str) -> SmoothingInputs:
        """The same guess on another device."""
        return SmoothingInputs(
            self.adjacency.to(device),
            self.probabilities.to(device),
            self.train_one_hot.to(device),
            self.train_mask.to(device),
        )


# Correct and smooth: the errors of a trained method flow along edges, then labels.


if TYPE_CHECKING:
    AnyTrained = TrainedMethod
else:
    AnyTrained = one_of(TRAINED_METHODS)

Scaling = Literal["auto", "fixed"]

MAX_SCALE = 1000
"""Errors that would grow more than this are left as they are."""


@dataclass(frozen=True, kw_only=True)
class CorrectAndSmooth(Method):
    """R = α A R + (1 − α) (Y − P) corrects P; S = α A S + (1 − α) P smooths it."""

    paper = "Huang et al. 2021, https://arxiv.org/abs/2010.13993"
    family: ClassVar[str] = "after training"

    correct_alpha: float = 0.5
    """What neighbours count for when errors flow; the paper tunes it within 0 and 1."""
    smooth_alpha: float = 0.5
    """What neighbours count for when labels flow; the paper tunes it within 0 and 1."""
    correct_by: Norm = "both"
    """Which ends scale the edges that errors take: D^-1/2 A D^-1/2, D^-1 A, A D^-1."""
    smooth_by: Norm = "both"
    """Which ends scale the edges that labels take."""
    scaling: Scaling = "auto"
    """Errors grow to the size they have on train nodes, or by a fixed factor."""
    scale: float = 1.0
    """That factor; the paper tunes it within .1 and 10."""
    flow_hops: int = 1
    """Propagations in each step; the paper tries 1 and 2."""
    flow_steps: int = 50
    """Steps of each of the two flows."""
    symmetrised: bool = True
    """Both flow both ways along directed edges, as in the paper's program."""
    base: AnyTrained = field(default_factory=lambda: MLP(hidden=256))
    """What is trained first; its scores become P by a softmax."""

    def __post_init__(self) -> None:
        for name in ("correct_alpha", "smooth_alpha"):
            if not 0 <= (value := getattr(self, name)) <= 1:
                told = name.replace("_", "-")
                raise UserError(f"--{told} is {value}; it is between 0 and 1.")
        for name in ("flow_hops", "flow_steps"):
            if (value := getattr(self, name)) < 1:
                told = name.replace("_", "-")
                raise UserError(f"--{told} is {value}; at least 1 is needed.")

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
        """Solve tasks around what the base, trained already, says of them."""
        began = time.perf_counter()
        guess = SmoothingInputs.of(tasks, trained, both_ways=self.symmetrised).to(
            device
        )
        scores = self.correct_and_smooth(guess, progress).cpu()
        spent = (time.perf_counter() - began) / len(tasks)
        return [
            Solution(
                scores[:, run],
                solution.curve
                and replace(solution.curve, seconds=solution.curve.seconds + spent),
                is_probability=True,
            )
            for run, solution in enumerate(trained)
        ]

    @torch.no_grad()
    def correct_and_smooth(
        self, guess: SmoothingInputs, progress: Progress = NO_PROGRESS
    ) -> Numbers:
        """What the base thinks of all nodes, corrected and then smoothed."""
        progress.stage("flowing", 2 * self.flow_steps, "steps")
        moved = CORRECTED[self.scaling](self, guess, progress)
        start = torch.where(guess.train_mask, guess.train_one_hot, moved)
        flow = NormalizedAdjacency.of(guess.adjacency, self.smooth_by)
        return self.propagate(flow, start, self.smooth_alpha, clamp01, progress)

    def propagate(
        self,
        flow: NormalizedAdjacency,
        start: Numbers,
        alpha: float,
        settle: Callable[[Tensor], Tensor],
        progress: Progress,
    ) -> Numbers:
        """Let numbers flow; after each step `settle` has the last word."""
        x = begin = start.flatten(1)
        for _ in range(self.flow_steps):
            for _ in range(self.flow_hops):
                x = flow @ x
            x = settle(torch.lerp(begin, x, alpha))
            progress.advance(1)
        return x.view_as(start)


def clamp01(x: Tensor) -> Tensor:
    """What lies below 0 or above 1 is moved to it."""
    return x.clamp(0, 1)


def autoscale(
    method: CorrectAndSmooth, guess: SmoothingInputs, progress: Progress
) -> Numbers:
    """Correct by errors that are as large everywhere as on an average train node."""
    errors = guess.errors
    flow = NormalizedAdjacency.of(guess.adjacency, method.correct_by)
    flown = method.propagate(
        flow, errors, method.correct_alpha, lambda x: x.clamp(-1, 1), progress
    )
    usual = errors.abs().sum((0, 2)) / guess.train_mask.sum((0, 2))
    times = usual[:, None] / flown.abs().sum(2, keepdim=True)
    # Where no error arrived there is nothing to enlarge: 0 / 0 must not spoil P.
    times = torch.where(times <= MAX_SCALE, times, 1.0)
    return guess.probabilities + times * flown


def fixed_scale(
    method: CorrectAndSmooth, guess: SmoothingInputs, progress: Progress
) -> Numbers:
    """Correct by errors times a factor; those of train nodes stay what they are."""
    errors, shown = (
        guess.errors.flatten(1),
        guess.train_mask.expand_as(guess.train_one_hot),
    )
    flow = NormalizedAdjacency.of(guess.adjacency, method.correct_by)
    flown = method.propagate(
        flow,
        guess.errors,
        method.correct_alpha,
        lambda x: torch.where(shown.flatten(1), errors, x),
        progress,
    )
    return guess.probabilities + method.scale * flown


CORRECTED: dict[
    Scaling, Callable[[CorrectAndSmooth, SmoothingInputs, Progress], Numbers]
] = {
    "auto": autoscale,
    "fixed": fixed_scale,
}
