"""measure: every measure of a graph, its edges read once for all that can share."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from unalike.errors import lookup
from unalike.graph import Graph
from unalike.measures.bootstrap import GROUPS, interval
from unalike.measures.convention import STORED, Convention
from unalike.measures.estimate import Estimate
from unalike.measures.table import MATRICES, MEASURES, OF_TALLY, OF_VIEW
from unalike.measures.tally import Groups, Tally, tally
from unalike.measures.view import View
from unalike.progress import SILENT, Progress


def measure(
    graph: Graph,
    *,
    only: Collection[str] = (),
    conventions: Convention | Mapping[str, Convention] = STORED,
    bootstrap: int = 0,
    seed: int = 0,
    progress: Progress = SILENT,
) -> dict[str, Any]:
    """Counts and measures of a graph by name; a measure without meaning is NaN.

    `conventions` is one for all, or one for each measure that differs from the default.
    `bootstrap` adds the 95 % intervals of the one-pass measures, from so many
    resamplings of nodes with their out-edges.
    """
    for name in only:
        lookup(MEASURES, name, "measure")
    wanted = frozenset(only or MEASURES)
    size = GROUPS if bootstrap else 1

    @cache
    def view(convention: Convention) -> View:
        return View.of(graph, convention)

    @cache
    def groups(convention: Convention) -> Groups:
        return tally(view(convention), groups=size, seed=seed, progress=progress)

    def chosen(name: str) -> Convention:
        if isinstance(conventions, Convention):
            return conventions
        return conventions.get(name, STORED)

    found = counts(graph, groups(chosen("class_homophily")).total())
    for name in filter(wanted.__contains__, OF_TALLY):
        found[name] = OF_TALLY[name](groups(chosen(name)).total())
    for name in filter(wanted.__contains__, MATRICES):
        found[name] = MATRICES[name](groups(chosen(name)).total()).tolist()
    for name in filter(wanted.__contains__, OF_VIEW):
        found |= spelled(name, OF_VIEW[name](view(chosen(name))))
    if bootstrap:
        found["intervals"] = {
            name: interval(groups(chosen(name)), OF_TALLY[name], bootstrap, seed)
            for name in filter(wanted.__contains__, OF_TALLY)
        }
    return found


def counts(graph: Graph, sums: Tally) -> dict[str, Any]:
    """The size of a graph; its loops come from the pass over the edges."""
    stored = graph.adjacency.num_entries
    return {
        "num_nodes": graph.num_nodes,
        "num_edges": stored if graph.directed else (stored + sums.num_loops) // 2,
        "num_features": graph.num_features,
        "num_classes": graph.num_classes,
        "num_loops": sums.num_loops,
        "num_unlabelled": int((graph.labels < 0).sum()),
        "directed": graph.directed,
    }


def spelled(name: str, value: float | Estimate) -> dict[str, float]:
    """A value by its name; that of a sample with its spread beside it."""
    if not isinstance(value, Estimate):
        return {name: value}
    return {
        name: value.value,
        f"{name}_deviation": value.deviation,
        f"{name}_standard_error": value.standard_error,
    }
