"""Result of one run, a list of results, and the command line that repeats a run."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from statistics import mean, stdev
from typing import Any

from unalike.data.split import PARTS
from unalike.datasets.registry import IN_MEMORY
from unalike.display import Displayable, TextTable
from unalike.errors import lookup
from unalike.experiments.evaluation import PredictionSummary
from unalike.formatting import format_mean_std
from unalike.methods import METHODS
from unalike.options import choices, options_of


@dataclass(frozen=True, kw_only=True, repr=False)
class Result(Displayable):
    """The result of one method on one split of one dataset; scores in percent."""

    dataset: str
    method: str
    options: dict[str, Any]
    """All hyperparameters by the names of their flags."""
    metric: str
    split: int
    seed: int
    train: float
    valid: float
    test: float
    best_epoch: int | None
    seconds: float
    """Wall-clock time of the stack this run was part of, divided by its runs."""
    peak_memory_mb: float
    device: str
    versions: dict[str, str]
    losses: list[float] = field(repr=False)
    grades: list[float] = field(repr=False)
    """The validation score after each epoch."""
    view: dict[str, Any] = field(default_factory=dict)
    """Dataset options that are not default, by the names of their flags."""
    answers: PredictionSummary | None = field(default=None, repr=False)
    """Summary of the test predictions; None for stored runs without one."""

    @property
    def command(self) -> str:
        """The command line that repeats this run."""
        return command_line(self, splits=str(self.split))

    def summary(self) -> TextTable:
        scores = {part: f"{getattr(self, part):.2f}" for part in PARTS}
        cells = {
            "metric": self.metric,
            **scores,
            "best epoch": str(self.best_epoch or "–"),
            "seconds": f"{self.seconds:.1f}",
        }
        title = f"{self.method} on {self.dataset}, split {self.split}"
        repeatable = self.method in METHODS and self.dataset != IN_MEMORY
        command = self.command if repeatable else ""
        return TextTable.from_rows(title, [*cells], [[*cells.values()]], note=command)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __repr__(self) -> str:
        where = f"{self.method} on {self.dataset}, split {self.split}"
        return f"Result({where}: {self.metric} {self.test:.2f})"


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
    """A list of results, displayed as mean ± std over the splits of each config."""

    def __repr__(self) -> str:
        score = f": {self[0].metric} {self.format_score()}" if self else ""
        return f"Runs({len(self)}{score})"

    @property
    def mean(self) -> float:
        """The mean test score of all results."""
        return mean(result.test for result in self)

    @property
    def std(self) -> float | None:
        """The sample standard deviation of the test scores; None for one result."""
        tests = [result.test for result in self]
        return stdev(tests) if len(tests) > 1 else None

    @property
    def valid_mean(self) -> float:
        """The mean validation score of all results."""
        return mean(result.valid for result in self)

    @property
    def seconds(self) -> float:
        """The total time of all results."""
        return sum(result.seconds for result in self)

    def format_score(self, part: str = "test") -> str:
        """Mean ± std of the scores on a part of the splits."""
        return format_mean_std([getattr(result, part) for result in self])

    def summary(self) -> TextTable:
        groups: dict[tuple[str, ...], Runs] = defaultdict(Runs)
        varying = self._varying_options()
        for result in self:
            config = " ".join(f"{name}={result.options.get(name)}" for name in varying)
            groups[result.dataset, result.method, config, result.metric].append(result)
        rows = [
            [
                *key,
                str(len(runs)),
                runs.format_score("valid"),
                runs.format_score("test"),
                f"{runs.seconds:.1f}",
            ]
            for key, runs in groups.items()
        ]
        return TextTable.from_rows(f"{len(self)} runs", HEADINGS, rows)

    def _varying_options(self) -> list[str]:
        """Options that differ between results of one method."""
        values: dict[tuple[str, str], set[str]] = defaultdict(set)
        for result in self:
            for name, value in result.options.items():
                values[result.method, name].add(repr(value))
        return [
            *dict.fromkeys(name for (_, name), seen in values.items() if len(seen) > 1)
        ]


# Command lines


def command_line(result: Result, *, splits: str, dataset: str | None = None) -> str:
    """The command line that repeats the runs of a result on some splits.

    `dataset` replaces the name of the dataset, for graphs that are found by their path.
    """
    defaults = lookup(METHODS, result.method, "method")()
    words = ["unalike", "train", shlex.quote(dataset or result.dataset)]
    words += override_flags(result.view)
    words += [result.method, *option_flags(defaults, result.options)]
    return " ".join([*words, "--splits", splits, "--seed", str(result.seed)])


def override_flags(overrides: Mapping[str, Any]) -> list[str]:
    """The flags of dataset options that are not default."""
    flags = (to_flag(name, value, False) for name, value in overrides.items())
    return [word for words in flags for word in words]


def option_flags(defaults: Any, options: Mapping[str, Any]) -> list[str]:
    """The flags of options, then the subcommands with their own flags.

    `defaults` is an instance of the dataclass that the options belong to. It has the
    values of options that are younger than a stored run.
    """
    known = {**options_of(defaults), **options}
    flags, subcommands = [], []
    choices_by_field = choices(type(defaults))
    for part in fields(defaults):
        default = getattr(defaults, part.name)
        if part.name in choices_by_field:
            name = known[part.name]
            kind = lookup(choices_by_field[part.name], name, part.name)
            inner = default if type(default) is kind else kind()
            subcommands += [name, *option_flags(inner, options)]
        elif is_dataclass(default):
            flags += option_flags(default, options)
        elif part.name in known:
            flags += to_flag(part.name, known[part.name], default)
    return flags + subcommands


def to_flag(name: str, value: Any, default: Any) -> list[str]:
    """An option as words of a command line; a switch only if it is not default."""
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        switch = f"--{flag}" if value else f"--no-{flag}"
        return [] if value == default else [switch]
    values = value if isinstance(value, list | tuple) else [value]
    return [f"--{flag}", *(shlex.quote(str(one)) for one in values)]
