"""Result of one run, a list of results, and the command line that repeats a run."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any

from unalike.data.split import PARTS
from unalike.display import Displayable, TextTable
from unalike.errors import lookup
from unalike.experiments.evaluation import PredictionSummary
from unalike.formatting import format_mean_std
from unalike.methods import METHODS
from unalike.options import choices

# Result: one run, with everything needed to repeat it.


@dataclass(frozen=True, kw_only=True)
class Result(Displayable):
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
    answers: PredictionSummary | None = field(default=None, repr=False)
    """What was said of the test nodes; None where it was not kept."""

    @property
    def command(self) -> str:
        """The command line that repeats this run."""
        return command_line(self, splits=str(self.split))

    def summary(self) -> TextTable:
        grades = {part: f"{getattr(self, part):.2f}" for part in PARTS}
        facts = {
            "metric": self.metric,
            **grades,
            "best epoch": str(self.best_epoch or "–"),
            "seconds": f"{self.seconds:.1f}",
        }
        title = f"{self.method} on {self.dataset}, split {self.split}"
        known = self.command if self.method in METHODS else ""
        return TextTable.from_rows(title, [*facts], [[*facts.values()]], note=known)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def command_line(result: Result, *, splits: str, dataset: str | None = None) -> str:
    """The command line that runs what a result came from on some splits.

    `dataset` is what to call the dataset, where its name alone does not find it.
    """
    usual = lookup(METHODS, result.method, "method")()
    words = ["unalike", "train", shlex.quote(dataset or result.dataset)]
    for name, value in result.view.items():
        words += to_flag(name, value, False)
    words += [result.method, *option_flags(usual, result.options)]
    return " ".join([*words, "--splits", splits, "--seed", str(result.seed)])


def option_flags(usual: Any, options: Mapping[str, Any]) -> list[str]:
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
            last += [
                name,
                *option_flags(value if type(value) is kind else kind(), options),
            ]
        elif is_dataclass(value):
            flags += option_flags(value, options)
        else:
            flags += to_flag(part.name, options[part.name], value)
    return flags + last


def to_flag(name: str, value: Any, usual: Any) -> list[str]:
    """An option as it is written on the command line; nothing for a usual switch."""
    told = name.replace("_", "-")
    if isinstance(value, bool):
        switch = f"--{told}" if value else f"--no-{told}"
        return [] if value == usual else [switch]
    parts = value if isinstance(value, list | tuple) else [value]
    return [f"--{told}", *(shlex.quote(str(part)) for part in parts)]


# Runs: a list of results, and how methods compare in it.


HEADINGS = (
    "dataset",
    "method",
    "settings",
    "metric",
    "splits",
    "valid",
    "test",
    "seconds",
)


class Runs(list[Result], Displayable):
    """A list of results, shown as mean ± std over the splits of each setting."""

    def summary(self) -> TextTable:
        groups: dict[tuple[str, ...], list[Result]] = defaultdict(list)
        differing = self._varying_options()
        for one in self:
            settings = " ".join(f"{name}={one.options.get(name)}" for name in differing)
            groups[one.dataset, one.method, settings, one.metric].append(one)
        rows = [[*key, *summary_cells(members)] for key, members in groups.items()]
        return TextTable.from_rows(f"{len(self)} runs", HEADINGS, rows)

    def _varying_options(self) -> list[str]:
        """Options that not all results of one method have in common."""
        seen: dict[tuple[str, str], set[str]] = defaultdict(set)
        for one in self:
            for name, setting in one.options.items():
                seen[one.method, name].add(repr(setting))
        return [
            *dict.fromkeys(name for (_, name), all_ in seen.items() if len(all_) > 1)
        ]


def summary_cells(results: list[Result]) -> list[str]:
    """What the results of one setting have come to."""
    grades = (
        format_mean_std([getattr(r, part) for r in results])
        for part in ("valid", "test")
    )
    seconds = sum(result.seconds for result in results)
    return [str(len(results)), *grades, f"{seconds:.1f}"]
