"""Trial: what a probe reached on the draws of a graph."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from unalike.advice.deadline import Deadline, OutOfTimeError
from unalike.advice.draws import Draw
from unalike.advice.probes import Probe
from unalike.options import options_of, with_options

SHORT = 100
"""Epochs of a first trial."""


@dataclass(frozen=True)
class Trial:
    """The grades of a probe, one for each draw, in percent."""

    probe: Probe
    grades: tuple[float, ...]
    seconds: float
    """Of one draw, with the epochs of the trial."""
    epochs: int | None
    """None where nothing is trained."""

    @property
    def expected(self) -> float:
        """The mean grade."""
        return mean(self.grades)

    @property
    def spread(self) -> float | None:
        """The deviation between draws."""
        return stdev(self.grades) if len(self.grades) > 1 else None

    @property
    def doubt(self) -> float | None:
        """Points that the mean may be off by: two standard errors."""
        spread = self.spread
        return None if spread is None else 2 * spread / len(self.grades) ** 0.5

    def lead(self, other: Trial) -> float:
        """By how many points it is better on average."""
        return self.expected - other.expected


def attempt(
    probe: Probe,
    draws: Sequence[Draw],
    *,
    epochs: int | None,
    deadline: Deadline,
    device: str = "cpu",
) -> Trial | None:
    """Try a probe, with its usual epochs or fewer; None if the time is too short."""
    if deadline.left < 0:
        return None
    usual = options_of(probe.method).get("epochs")
    wanted = usual if epochs is None or usual is None else min(epochs, usual)
    method = probe.method
    if wanted != usual:
        method = with_options(method, {"epochs": wanted}, probe.words)
    began = time.perf_counter()
    try:
        solutions = method.solve_all(
            [draw.task for draw in draws], device=device, progress=deadline
        )
    except OutOfTimeError:
        return None
    each = (time.perf_counter() - began) / len(draws)
    grades = tuple(
        draw.grade(solution) for draw, solution in zip(draws, solutions, strict=True)
    )
    return Trial(probe, grades, each, wanted)
