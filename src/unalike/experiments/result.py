"""Result: one run, with everything needed to repeat it."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass
from typing import Any

from unalike.errors import lookup
from unalike.methods import METHODS
from unalike.options import words_of


@dataclass(frozen=True, kw_only=True)
class Result:
    """What came out of one method on one split of one dataset; grades in percent."""

    dataset: str
    method: str
    options: dict[str, Any]
    """Every hyperparameter, named as its flag."""
    metric: str
    split: int
    seed: int
    train: float
    valid: float
    test: float
    best_epoch: int | None
    seconds: float
    """Wall clock of the stack this run was part of, divided by its runs."""
    peak_memory_mb: float
    device: str
    versions: dict[str, str]
    losses: list[float]
    grades: list[float]

    @property
    def command(self) -> str:
        """The command line that repeats this run."""
        return command(self, splits=str(self.split))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def command(result: Result, *, splits: str) -> str:
    """The command line that runs what a result came from on some splits."""
    usual = lookup(METHODS, result.method, "method")()
    words = ["unalike", "train", shlex.quote(result.dataset), result.method]
    words += words_of(usual, result.options)
    return " ".join([*words, "--splits", splits, "--seed", str(result.seed)])
