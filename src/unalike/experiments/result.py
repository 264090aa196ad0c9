"""Result: one run, with everything needed to repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any

from unalike.display import Displayed, Sheet
from unalike.errors import lookup
from unalike.experiments.answers import Answers
from unalike.methods import METHODS
from unalike.options import choices
from unalike.split import PARTS


@dataclass(frozen=True, kw_only=True)
class Result(Displayed):
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
    losses: list[float] = field(repr=False)
    grades: list[float] = field(repr=False)
    view: dict[str, Any] = field(default_factory=dict)
    """What the dataset was seen as other than usual, named as flags."""
    answers: Answers | None = field(default=None, repr=False)
    """What was said of the test nodes; None where it was not kept."""

    @property
    def command(self) -> str:
        """The command line that repeats this run."""
        return command(self, splits=str(self.split))

    def sheet(self) -> Sheet:
        grades = {part: f"{getattr(self, part):.2f}" for part in PARTS}
        facts = {
            "metric": self.metric,
            **grades,
            "best epoch": str(self.best_epoch or "–"),
            "seconds": f"{self.seconds:.1f}",
        }
        title = f"{self.method} on {self.dataset}, split {self.split}"
        known = self.command if self.method in METHODS else ""
        return Sheet(title, [*facts], [[*facts.values()]], note=known)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def command(result: Result, *, splits: str, dataset: str | None = None) -> str:
    """The command line that runs what a result came from on some splits.

    `dataset` is what to call the dataset, where its name alone does not find it.
    """
    usual = lookup(METHODS, result.method, "method")()
    words = ["unalike", "train", shlex.quote(dataset or result.dataset)]
    for name, value in result.view.items():
        words += flag(name, value, False)
    words += [result.method, *words_of(usual, result.options)]
    return " ".join([*words, "--splits", splits, "--seed", str(result.seed)])


def words_of(usual: Any, options: Mapping[str, Any]) -> list[str]:
    """Options as the command line has them: flags, then what is chosen with its own.

    `usual` holds the defaults of the settings that the options are about.
    """
    flags, last = [], []
    chosen = choices(type(usual))
    for part in fields(usual):
        value = getattr(usual, part.name)
        if part.name in chosen:
            name = options[part.name]
            kind = lookup(chosen[part.name], name, part.name)
            last += [name, *words_of(value if type(value) is kind else kind(), options)]
        elif is_dataclass(value):
            flags += words_of(value, options)
        else:
            flags += flag(part.name, options[part.name], value)
    return flags + last


def flag(name: str, value: Any, usual: Any) -> list[str]:
    """An option as it is written on the command line; nothing for a usual switch."""
    told = name.replace("_", "-")
    if isinstance(value, bool):
        switch = f"--{told}" if value else f"--no-{told}"
        return [] if value == usual else [switch]
    parts = value if isinstance(value, list | tuple) else [value]
    return [f"--{told}", *(shlex.quote(str(part)) for part in parts)]
