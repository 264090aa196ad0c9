"""measure: every measure of a graph, its edges read once for all that can share."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from unalike.errors import lookup
from unalike.graph import Graph
from unalike.measures.bootstrap import GROUPS, interval
from unalike.measures.convention import STORED, Convention
from unalike.measures.desk import Desk
from unalike.measures.estimate import Estimate
from unalike.measures.found import Found
from unalike.measures.table import MATRICES, MEASURES, OF_TALLY, OF_VIEW
from unalike.measures.tally import Tally
from unalike.progress import SILENT, Progress

Of = TypeVar("Of")


def measure(
    graph: Graph,
    *,
    only: Collection[str] = (),
    conventions: Convention | Mapping[str, Convention] = STORED,
    bootstrap: int = 0,
    seed: int = 0,
    progress: Progress = SILENT,
) -> Found:
    """Counts and measures of a graph by name; a measure without meaning is NaN.

    `conventions` is one for all, or one for each measure that differs from the default.
    `bootstrap` adds the 95 % intervals of the one-pass measures, from so many
    resamplings of nodes with their out-edges.
    """
    for name in only:
        lookup(MEASURES, name, "measure")
    size = GROUPS if bootstrap else 1
    desk = Desk(graph, conventions, size, seed, progress)
    found = counts(graph, desk.tally("class_homophily"))
    for name, of_tally in among(OF_TALLY, only).items():
        found[name] = of_tally(desk.tally(name))
    for name, matrix in among(MATRICES, only).items():
        found[name] = matrix(desk.tally(name)).tolist()
    for name, of_view in among(OF_VIEW, only).items():
        found |= spelled(name, of_view(desk.view(name)))
    if bootstrap:
        found["intervals"] = {
            name: interval(desk.groups(name), of_tally, bootstrap, seed)
            for name, of_tally in among(OF_TALLY, only).items()
        }
    return Found(found)


def among(table: Mapping[str, Of], only: Collection[str]) -> dict[str, Of]:
    """The entries of a table that are asked for; all of them if none is."""
    return {name: of for name, of in table.items() if not only or name in only}


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
