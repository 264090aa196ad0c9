"""`measure()`: every measure of a graph, sharing passes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from unalike.data.graph import Graph
from unalike.errors import lookup
from unalike.measures.conventions import STORED, Convention
from unalike.measures.edge_statistics import (
    BOOTSTRAP_GROUPS,
    EdgeStatistics,
    GraphView,
    GroupedEdgeStatistics,
    bootstrap_interval,
    count_edges,
)
from unalike.measures.interpretation import MeasureResult
from unalike.measures.registry import (
    MATRIX_MEASURES,
    MEASURES,
    ONE_PASS_MEASURES,
    OWN_PASS_MEASURES,
)
from unalike.measures.two_hop import Estimate
from unalike.progress import NO_PROGRESS, Progress

# Desk: the views and tallies of one graph, each made once, when first asked for.


@dataclass(frozen=True, eq=False)
class StatisticsCache:
    """What each measure needs, by the name of the measure."""

    graph: Graph
    conventions: Convention | Mapping[str, Convention] = STORED
    """One for all, or one for each measure that differs from the default."""
    num_groups: int = 1
    seed: int = 0
    progress: Progress = NO_PROGRESS
    views: dict[Convention, GraphView] = field(default_factory=dict)
    statistics: dict[Convention, GroupedEdgeStatistics] = field(default_factory=dict)

    def convention(self, name: str) -> Convention:
        if isinstance(self.conventions, Convention):
            return self.conventions
        return self.conventions.get(name, STORED)

    def view(self, name: str) -> GraphView:
        convention = self.convention(name)
        if convention not in self.views:
            self.views[convention] = GraphView.of(self.graph, convention)
        return self.views[convention]

    def groups(self, name: str) -> GroupedEdgeStatistics:
        convention = self.convention(name)
        if convention not in self.statistics:
            self.statistics[convention] = count_edges(
                self.view(name),
                groups=self.num_groups,
                seed=self.seed,
                progress=self.progress,
            )
        return self.statistics[convention]

    def tally(self, name: str) -> EdgeStatistics:
        return self.groups(name).total()


# measure: every measure of a graph, its edges read once for all that can share.


MeasureFunction = TypeVar("MeasureFunction")


def measure(
    graph: Graph,
    *,
    only: Collection[str] = (),
    conventions: Convention | Mapping[str, Convention] = STORED,
    bootstrap: int = 0,
    seed: int = 0,
    progress: Progress = NO_PROGRESS,
) -> MeasureResult:
    """Counts and measures of a graph by name; a measure without meaning is NaN.

    `conventions` is one for all, or one for each measure that differs from the default.
    `bootstrap` adds the 95 % intervals of the one-pass measures, from so many
    resamplings of nodes with their out-edges.
    """
    for name in only:
        lookup(MEASURES, name, "measure")
    size = BOOTSTRAP_GROUPS if bootstrap else 1
    desk = StatisticsCache(graph, conventions, size, seed, progress)
    found = counts(graph, desk.tally("class_homophily"))
    for name, of_tally in select(ONE_PASS_MEASURES, only).items():
        found[name] = of_tally(desk.tally(name))
    for name, matrix in select(MATRIX_MEASURES, only).items():
        found[name] = matrix(desk.tally(name)).tolist()
    for name, of_view in select(OWN_PASS_MEASURES, only).items():
        found |= as_items(name, of_view(desk.view(name)))
    if bootstrap:
        found["intervals"] = {
            name: bootstrap_interval(desk.groups(name), of_tally, bootstrap, seed)
            for name, of_tally in select(ONE_PASS_MEASURES, only).items()
        }
    return MeasureResult(found)


def select(
    table: Mapping[str, MeasureFunction], only: Collection[str]
) -> dict[str, MeasureFunction]:
    """The entries of a table that are asked for; all of them if none is."""
    return {name: of for name, of in table.items() if not only or name in only}


def counts(graph: Graph, sums: EdgeStatistics) -> dict[str, Any]:
    """The size of a graph; its loops come from the pass over the edges."""
    stored = graph.adjacency.nnz
    return {
        "num_nodes": graph.num_nodes,
        "num_edges": stored if graph.directed else (stored + sums.num_loops) // 2,
        "num_features": graph.num_features,
        "num_classes": graph.num_classes,
        "num_loops": sums.num_loops,
        "num_unlabelled": int((graph.labels < 0).sum()),
        "directed": graph.directed,
    }


def as_items(name: str, value: float | Estimate) -> dict[str, float]:
    """A value by its name; that of a sample with its spread beside it."""
    if not isinstance(value, Estimate):
        return {name: value}
    return {
        name: value.value,
        f"{name}_deviation": value.std,
        f"{name}_standard_error": value.standard_error,
    }
