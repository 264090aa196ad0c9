"""Select: the best setting by validation alone, and what it does on the test nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from statistics import mean, stdev

from unalike.experiments.results import Row


@dataclass(frozen=True, eq=False)
class Tried:
    """A setting with all its runs on one version of a dataset."""

    setting: str
    runs: list[Row]

    @property
    def valid(self) -> float:
        return mean(row["valid"] for row in self.runs)

    @property
    def test(self) -> float:
        return mean(row["test"] for row in self.runs)

    @property
    def std(self) -> float | None:
        """The sample standard deviation over the splits."""
        tests = [row["test"] for row in self.runs]
        return stdev(tests) if len(tests) > 1 else None


def tried(rows: Iterable[Row], wanted: Collection[str] | None = None) -> list[Tried]:
    """Runs put together by setting; those that are wanted, or all."""
    groups: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        if wanted is None or row["setting"] in wanted:
            place = (row["dataset_hash"], row["setting"], row["seed"])
            groups.setdefault(place, []).append(row)
    return [Tried(setting, runs) for (_, setting, _), runs in groups.items()]


def complete(settings: Iterable[Tried], splits: int) -> list[Tried]:
    """Those of which every split was run."""
    return [
        one for one in settings if {r["split"] for r in one.runs} >= set(range(splits))
    ]


def select(settings: Iterable[Tried]) -> Tried | None:
    """The one with the highest mean validation grade; test grades play no part.

    The key decides between equals, so that the order of the runs does not.
    """
    return max(settings, key=lambda one: (one.valid, one.setting), default=None)
