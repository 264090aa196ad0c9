"""Runs: a list of results, and how methods compare in it."""

from __future__ import annotations

from collections import defaultdict
from statistics import mean, stdev

from unalike.display import Displayed, Sheet
from unalike.experiments.result import Result

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


class Runs(list[Result], Displayed):
    """A list of results, shown as mean ± std over the splits of each setting."""

    def sheet(self) -> Sheet:
        groups: dict[tuple[str, ...], list[Result]] = defaultdict(list)
        differing = self._differing()
        for one in self:
            settings = " ".join(f"{name}={one.options.get(name)}" for name in differing)
            groups[one.dataset, one.method, settings, one.metric].append(one)
        rows = [[*key, *told(members)] for key, members in groups.items()]
        return Sheet(f"{len(self)} runs", HEADINGS, rows)

    def _differing(self) -> list[str]:
        """Options that not all results of one method have in common."""
        seen: dict[tuple[str, str], set[str]] = defaultdict(set)
        for one in self:
            for name, setting in one.options.items():
                seen[one.method, name].add(repr(setting))
        return [
            *dict.fromkeys(name for (_, name), all_ in seen.items() if len(all_) > 1)
        ]


def told(results: list[Result]) -> list[str]:
    """What the results of one setting have come to."""
    grades = (spread([getattr(r, part) for r in results]) for part in ("valid", "test"))
    seconds = sum(result.seconds for result in results)
    return [str(len(results)), *grades, f"{seconds:.1f}"]


def spread(numbers: list[float]) -> str:
    """A mean, with the standard deviation where there are several numbers."""
    about = f"{mean(numbers):.2f}"
    return about if len(numbers) == 1 else f"{about} ± {stdev(numbers):.2f}"
