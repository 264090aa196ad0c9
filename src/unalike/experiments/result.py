"""Result: one run, with everything needed to repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from unalike.errors import lookup
from unalike.methods import METHODS
from unalike.options import options_of


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
    view: dict[str, Any] = field(default_factory=dict)
    """What the dataset was seen as other than usual, named as flags."""

    @property
    def command(self) -> str:
        """The command line that repeats this run."""
        return self.command_of([self.split])

    def command_of(self, splits: Sequence[int]) -> str:
        """The command line that does the same on some splits."""
        usual = options_of(lookup(METHODS, self.method, "method")())
        flags = [flag(name, value, usual[name]) for name, value in self.options.items()]
        flags += [flag(name, value, False) for name, value in self.view.items()]
        words = ["unalike train", shlex.quote(self.dataset), self.method, *flags]
        numbers = ",".join(map(str, splits))
        words += [f"--splits {numbers}", f"--seed {self.seed}"]
        return " ".join(filter(None, words))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def flag(name: str, value: Any, usual: Any) -> str:
    """An option as it is written on the command line; nothing for a usual switch."""
    told = name.replace("_", "-")
    if not isinstance(value, bool):
        return f"--{told} {shlex.quote(str(value))}"
    if value == usual:
        return ""
    return f"--{told}" if value else f"--no-{told}"
