"""Desk: the views and tallies of one graph, each made once, when first asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from unalike.graph import Graph
from unalike.measures.convention import STORED, Convention
from unalike.measures.tally import Groups, Tally, tally
from unalike.measures.view import View
from unalike.progress import SILENT, Progress


@dataclass(frozen=True, eq=False)
class Desk:
    """What each measure needs, by the name of the measure."""

    graph: Graph
    conventions: Convention | Mapping[str, Convention] = STORED
    """One for all, or one for each measure that differs from the default."""
    num_groups: int = 1
    seed: int = 0
    progress: Progress = SILENT
    views: dict[Convention, View] = field(default_factory=dict)
    sums: dict[Convention, Groups] = field(default_factory=dict)

    def convention(self, name: str) -> Convention:
        if isinstance(self.conventions, Convention):
            return self.conventions
        return self.conventions.get(name, STORED)

    def view(self, name: str) -> View:
        convention = self.convention(name)
        if convention not in self.views:
            self.views[convention] = View.of(self.graph, convention)
        return self.views[convention]

    def groups(self, name: str) -> Groups:
        convention = self.convention(name)
        if convention not in self.sums:
            self.sums[convention] = tally(
                self.view(name),
                groups=self.num_groups,
                seed=self.seed,
                progress=self.progress,
            )
        return self.sums[convention]

    def tally(self, name: str) -> Tally:
        return self.groups(name).total()
