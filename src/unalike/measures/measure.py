"""Compute homophily measures of a graph, with shared passes over the edges."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache, partial
from typing import Any, TypeVar

import numpy as np

from unalike.data.graph import Graph
from unalike.data.regression import check_has_classes
from unalike.data.split import Split
from unalike.errors import UserError, check_seed, lookup
from unalike.measures.edge_statistics import (
    BOOTSTRAP_GROUPS,
    MAX_RESAMPLES,
    STORED,
    Convention,
    EdgeStatistics,
    GraphView,
    GroupedEdgeStatistics,
    Matrix,
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

MeasureFunction = TypeVar("MeasureFunction")


def measure(
    graph: Graph,
    *,
    only: Collection[str] = (),
    conventions: Convention | Mapping[str, Convention] = STORED,
    splits: Sequence[Split] = (),
    bootstrap: int = 0,
    seed: int = 0,
    progress: Progress = NO_PROGRESS,
) -> MeasureResult:
    """Counts and measures of a graph by name; an undefined measure is NaN.

    `conventions` is one for all, or one for each measure that differs from the default.
    `splits` are those of the graph, for the measure that compares train and test nodes.
    `bootstrap` adds the 95 % confidence intervals of the one-pass measures, from this
    number of resamples of nodes with their out-edges.
    """
    check_seed(seed)
    check_has_classes(graph, "Homophily")
    for name in only:
        lookup(MEASURES, name, "measure")
    if not 0 <= bootstrap <= MAX_RESAMPLES:
        raise UserError(f"--bootstrap is {bootstrap}; give 0 to {MAX_RESAMPLES}.")
    num_groups = BOOTSTRAP_GROUPS if bootstrap else 1
    convention = partial(convention_of, conventions)
    view = cache(partial(GraphView.of, graph, splits=splits))

    @cache
    def statistics(convention: Convention) -> GroupedEdgeStatistics:
        return count_edges(
            view(convention), num_groups=num_groups, seed=seed, progress=progress
        )

    one_pass = select(ONE_PASS_MEASURES, only)
    result = counts(graph, statistics(convention("class_homophily")).total())
    for name, function in (one_pass | select(MATRIX_MEASURES, only)).items():
        result |= as_items(name, function(statistics(convention(name)).total()))
    for name, view_measure in select(OWN_PASS_MEASURES, only).items():
        result |= as_items(name, view_measure(view(convention(name))))
    if bootstrap:
        result["intervals"] = {
            name: bootstrap_interval(
                statistics(convention(name)), scalar_measure, bootstrap, seed
            )
            for name, scalar_measure in one_pass.items()
        }
    return MeasureResult(result)


def convention_of(
    conventions: Convention | Mapping[str, Convention], name: str
) -> Convention:
    """The convention of a measure."""
    if isinstance(conventions, Convention):
        return conventions
    return conventions.get(name, STORED)


def select(
    table: Mapping[str, MeasureFunction], only: Collection[str]
) -> dict[str, MeasureFunction]:
    """The selected entries of a table; all of them if none is selected."""
    return {name: value for name, value in table.items() if not only or name in only}


def counts(graph: Graph, statistics: EdgeStatistics) -> dict[str, Any]:
    """Counts of a graph; its self-loops come from the pass over the edges."""
    nnz, num_loops = graph.adjacency.nnz, statistics.num_loops
    return {
        "num_nodes": graph.num_nodes,
        "num_edges": nnz if graph.directed else (nnz + num_loops) // 2,
        "num_features": graph.num_features,
        "num_classes": graph.num_classes,
        "num_loops": num_loops,
        "num_unlabelled": int((graph.labels < 0).sum()),
        "directed": graph.directed,
    }


def as_items(name: str, value: float | Matrix | Estimate) -> dict[str, Any]:
    """The value of a measure by name; an estimate adds its deviation and error."""
    if isinstance(value, np.ndarray):
        return {name: value.tolist()}
    if not isinstance(value, Estimate):
        return {name: value}
    return {
        name: value.value,
        f"{name}_deviation": value.std,
        f"{name}_standard_error": value.standard_error,
    }
