"""Correct and smooth: the errors of a trained method flow along edges, then labels."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from torch import Tensor

from unalike.errors import UserError
from unalike.methods.layers.flow import By, Flow
from unalike.methods.layers.guess import Guess, Numbers
from unalike.methods.method import Method, Trained
from unalike.methods.mlp import MLP
from unalike.methods.trained import TRAINED
from unalike.options import one_of
from unalike.progress import SILENT, Progress
from unalike.task import Solution, Task
from unalike.training.checkpoint import Checkpoint

if TYPE_CHECKING:
    AnyTrained = Trained
else:
    AnyTrained = one_of(TRAINED)

Scaling = Literal["auto", "fixed"]

MOST_TIMES = 1000
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
    correct_by: By = "both"
    """Which ends scale the edges that errors take: D^-1/2 A D^-1/2, D^-1 A, A D^-1."""
    smooth_by: By = "both"
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
        progress: Progress = SILENT,
        checkpoint: Checkpoint | None = None,
    ) -> list[Solution]:
        trained = self.base.solve_all(
            tasks, device=device, progress=progress, checkpoint=checkpoint
        )
        return self.around(tasks, trained, device=device, progress=progress)

    def around(
        self,
        tasks: Sequence[Task],
        trained: Sequence[Solution],
        *,
        device: torch.device | str = "cpu",
        progress: Progress = SILENT,
    ) -> list[Solution]:
        """Solve tasks around what the base, trained already, says of them."""
        began = time.perf_counter()
        guess = Guess.of(tasks, trained, both_ways=self.symmetrised).to(device)
        scores = self.improve(guess, progress).cpu()
        spent = (time.perf_counter() - began) / len(tasks)
        return [
            Solution(
                scores[:, run],
                solution.curve
                and replace(solution.curve, seconds=solution.curve.seconds + spent),
                shares=True,
            )
            for run, solution in enumerate(trained)
        ]

    @torch.no_grad()
    def improve(self, guess: Guess, progress: Progress = SILENT) -> Numbers:
        """What the base thinks of all nodes, corrected and then smoothed."""
        progress.stage("flowing", 2 * self.flow_steps, "steps")
        moved = CORRECTED[self.scaling](self, guess, progress)
        start = torch.where(guess.shown, guess.known, moved)
        flow = Flow.of(guess.adjacency, self.smooth_by)
        return self.spread(flow, start, self.smooth_alpha, shares, progress)

    def spread(
        self,
        flow: Flow,
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


def shares(x: Tensor) -> Tensor:
    """What lies below 0 or above 1 is moved to it."""
    return x.clamp(0, 1)


def to_size_of_train(
    method: CorrectAndSmooth, guess: Guess, progress: Progress
) -> Numbers:
    """Correct by errors that are as large everywhere as on an average train node."""
    errors = guess.errors
    flow = Flow.of(guess.adjacency, method.correct_by)
    flown = method.spread(
        flow, errors, method.correct_alpha, lambda x: x.clamp(-1, 1), progress
    )
    usual = errors.abs().sum((0, 2)) / guess.shown.sum((0, 2))
    times = usual[:, None] / flown.abs().sum(2, keepdim=True)
    # Where no error arrived there is nothing to enlarge: 0 / 0 must not spoil P.
    times = torch.where(times <= MOST_TIMES, times, 1.0)
    return guess.guessed + times * flown


def by_a_factor(method: CorrectAndSmooth, guess: Guess, progress: Progress) -> Numbers:
    """Correct by errors times a factor; those of train nodes stay what they are."""
    errors, shown = guess.errors.flatten(1), guess.shown.expand_as(guess.known)
    flow = Flow.of(guess.adjacency, method.correct_by)
    flown = method.spread(
        flow,
        guess.errors,
        method.correct_alpha,
        lambda x: torch.where(shown.flatten(1), errors, x),
        progress,
    )
    return guess.guessed + method.scale * flown


CORRECTED: dict[Scaling, Callable[[CorrectAndSmooth, Guess, Progress], Numbers]] = {
    "auto": to_size_of_train,
    "fixed": by_a_factor,
}
