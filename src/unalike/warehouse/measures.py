"""Homophily measures by group-bys in an engine; only tables of classes leave it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal

import narwhals as nw
import numpy as np
from narwhals import col, lit, when

from unalike.errors import lookup
from unalike.measures.edge_statistics import STORED, Convention, EdgeStatistics
from unalike.measures.interpretation import MeasureResult
from unalike.measures.measure import as_items, select
from unalike.measures.one_hop import node_homophily, safe_divide
from unalike.measures.registry import MATRIX_MEASURES, ONE_PASS_MEASURES
from unalike.measures.two_hop import MAX_EXACT_NODES, SAMPLE_SIZE, Estimate
from unalike.warehouse.frames import (
    PRIMES,
    Columns,
    FrameGraph,
    LazyFrame,
    collect,
    count_rows,
    filled,
    hashed,
    open_frames,
)

TOLERANCE = 1e-9
"""Rounding that does not decide whether a node is nearest to its own class."""


def measure(
    edges: Any,
    nodes: Any,
    *,
    label: str,
    source: str | None = None,
    target: str | None = None,
    id: str | None = None,
    split: str | None = None,
    directed: bool = False,
    unknown: Literal["refuse", "drop"] = "refuse",
    only: Collection[str] = (),
    conventions: Convention | Mapping[str, Convention] = STORED,
) -> MeasureResult:
    """Counts and measures of a graph whose tables stay in their engine.

    The tables are frames of pandas, polars, PyArrow, DuckDB or Spark. The values are
    those of `unalike.measure` after `import_graph`, without the one that needs
    features. `split` is a column that says train, valid or test.
    """
    for name in only:
        lookup(FRAME_MEASURES, name, "measure in an engine")
    columns = Columns(source=source, target=target, id=id, label=label, split=split)
    with open_frames(
        edges, nodes, columns, directed=directed, unknown=unknown
    ) as graph:

        @cache
        def view_by(convention: Convention) -> FrameView:
            both_ways = convention.both_ways
            return FrameView(graph.to_undirected() if both_ways else graph, convention)

        def view(name: str) -> FrameView:
            if isinstance(conventions, Convention):
                return view_by(conventions)
            return view_by(conventions.get(name, STORED))

        result = counts(graph, view("class_homophily").statistics)
        for name, scalar_measure in select(ONE_PASS_MEASURES, only).items():
            result[name] = scalar_measure(view(name).statistics)
        for name, matrix_measure in select(MATRIX_MEASURES, only).items():
            result[name] = matrix_measure(view(name).statistics).tolist()
        for name, view_measure in select(VIEW_MEASURES, only).items():
            result |= as_items(name, view_measure(view(name)))
    return MeasureResult(result)


def counts(graph: FrameGraph, statistics: EdgeStatistics) -> dict[str, Any]:
    """Counts of a graph; its self-loops come from the statistics of its edges."""
    nnz, num_loops = count_rows(graph.pairs), statistics.num_loops
    unlabelled = graph.nodes.filter(col("class") == graph.num_classes)
    return {
        "num_nodes": count_rows(graph.nodes),
        "num_edges": nnz if graph.directed else (nnz + num_loops) // 2,
        "num_classes": graph.num_classes,
        "num_loops": num_loops,
        "num_unlabelled": count_rows(unlabelled),
        "directed": graph.directed,
    }


@dataclass(frozen=True, eq=False)
class FrameView:
    """A graph in an engine under a convention of measures."""

    graph: FrameGraph
    convention: Convention

    @property
    def num_valid(self) -> int:
        """Nodes with a class below this one are valid."""
        return self.graph.num_classes + self.convention.unlabelled

    @cached_property
    def pairs(self) -> LazyFrame:
        """The pairs with their weight, and 1 for a self-loop."""
        loop = col("source") == col("target")
        weight = when(loop).then(lit(self.convention.loops)).otherwise(lit(1))
        is_loop = when(loop).then(lit(1)).otherwise(lit(0))
        return self.graph.pairs.with_columns(
            weight=weight.cast(nw.Int64), loop=is_loop.cast(nw.Int64)
        )

    @property
    def reversed_pairs(self) -> LazyFrame:
        """The same with source and target swapped."""
        return self.pairs.select("weight", "loop", source="target", target="source")

    @cached_property
    def out(self) -> Neighbours:
        """Where edges lead to."""
        return Neighbours.of(self, self.pairs)

    @cached_property
    def into(self) -> Neighbours:
        """Where edges come from."""
        return Neighbours.of(self, self.reversed_pairs)

    @cached_property
    def statistics(self) -> EdgeStatistics:
        """Edge statistics of all nodes, as the local measures read them."""
        return self.out.statistics(self)

    @cached_property
    def neighbour_sets(self) -> LazyFrame:
        """Nodes that have neighbours, with hashes of the set of them."""
        numbers = self.graph.nodes.select(
            target="node",
            first=hashed(col("number"), PRIMES[0]),
            second=hashed(col("number"), PRIMES[1]),
        )
        pairs = self.graph.pairs
        if not self.convention.loops:
            pairs = pairs.filter(col("source") != col("target"))
        sets = pairs.join(numbers, on="target").group_by("source")
        hashes = sets.agg(
            col("first", "second").sum(), nw.len().alias("size")
        ).with_columns(col(*SET).cast(nw.Int64))
        nodes = self.graph.nodes.join(hashes, left_on="node", right_on="source")
        return self.graph.engine.keep(nodes)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Weighted neighbours of nodes by class, in one direction.

    `counts` has node, class, other (the class of neighbours), count and loops; `nodes`
    has node, class and degree, the count of valid neighbours.
    """

    counts: LazyFrame
    nodes: LazyFrame

    @classmethod
    def of(cls, view: FrameView, pairs: LazyFrame) -> Neighbours:
        """Count the neighbours of each node by one join and one group-by."""
        graph, keep = view.graph, view.graph.engine.keep
        others = graph.nodes.select(target="node", other="class")
        grouped = pairs.join(others, on="target").group_by("source", "other")
        by_class = grouped.agg(
            col("weight").sum().alias("count"), col("loop").sum().alias("loops")
        )
        counts = keep(
            by_class.select(
                "other", col("count", "loops").cast(nw.Int64), node="source"
            )
        )
        valid = counts.filter(col("other") < view.num_valid)
        degrees = valid.group_by("node").agg(col("count").sum().alias("degree"))
        degrees = degrees.with_columns(col("degree").cast(nw.Int64))
        nodes = graph.nodes.select("node", "class")
        nodes = nodes.join(degrees, on="node", how="left")
        return cls(counts, keep(nodes.with_columns(*filled(["degree"]))))

    def statistics(self, view: FrameView) -> EdgeStatistics:
        valid, degree = view.num_valid, col("degree").cast(nw.Float64)
        share = col("count") / when(degree > 0).then(degree).otherwise(lit(1.0))
        cells = (
            self.counts.join(self.nodes, on="node")
            .with_columns(share=share)
            .with_columns(square=col("share") * col("count"))
            .group_by("class", "other")
            .agg(col("count", "share", "square", "loops").sum())
        )
        table = collect(cells)
        vectors = collect(
            self.nodes.with_columns(
                square=degree * degree,
                has_edge=when(degree > 0).then(lit(1)).otherwise(lit(0)),
            )
            .group_by("class")
            .agg(nw.len().alias("nodes"), col("square").sum(), col("has_edge").sum())
        )

        def sums(rows: list[dict[str, Any]], name: str, *keys: str) -> np.ndarray:
            result = np.zeros((view.graph.num_classes + 1,) * len(keys))
            for row in rows:
                result[tuple(row[key] for key in keys)] = float(row[name])
            return result[(slice(valid),) * len(keys)]

        return EdgeStatistics(
            edges=sums(table, "count", "class", "other"),
            neighbour_shares=sums(table, "share", "class", "other"),
            squares=sums(table, "square", "class", "other"),
            nodes=sums(vectors, "nodes", "class"),
            nodes_with_edges=sums(vectors, "has_edge", "class"),
            degree_squares=sums(vectors, "square", "class"),
            num_loops=sum(int(row["loops"]) for row in table),
            directed=view.graph.directed,
        )


# Measures that need more than the statistics of one pass.


def in_node_homophily(view: FrameView) -> float:
    """Node homophily over in-neighbours; directed graphs only."""
    if not view.graph.directed:
        return math.nan
    return node_homophily(view.into.statistics(view))


def shared_target_homophily(view: FrameView) -> float:
    """Node homophily among nodes with common out-neighbours, along A A^T."""
    return _common_ends(view, view.pairs, lambda: view.into)


def shared_source_homophily(view: FrameView) -> float:
    """Node homophily among nodes with common in-neighbours, along A^T A."""
    return _common_ends(view, view.reversed_pairs, lambda: view.out)


def _common_ends(
    view: FrameView, pairs: LazyFrame, behind: Callable[[], Neighbours]
) -> float:
    """The mean fraction of same labels behind the ends of each node's pairs."""
    if not view.graph.directed:
        return math.nan
    ends = behind()
    own = view.graph.nodes.select(source="node", own="class")
    own = own.filter(col("own") < view.num_valid)
    same = ends.counts.select(target="node", own="other", same="count")
    total = ends.nodes.select(target="node", total="degree")
    diagonal = col("weight") * col("weight")
    sums = (
        pairs.join(own, on="source")
        .join(same, on=["target", "own"], how="left")
        .join(total, on="target")
        .with_columns(*filled(["same"]))
        .with_columns(
            same=col("weight") * col("same") - diagonal,
            total=col("weight") * col("total") - diagonal,
        )
        .group_by("source")
        .agg(col("same").sum(), col("total").sum())
        .filter(col("total") > 0)
        .with_columns(
            fraction=col("same").cast(nw.Float64) / col("total").cast(nw.Float64)
        )
    )
    [row] = collect(sums.select(col("fraction").mean()))
    return math.nan if row["fraction"] is None else float(row["fraction"])


def two_hop_node_homophily(view: FrameView) -> Estimate:
    """Node homophily over the nodes at distance exactly two.

    Above 10,000 labelled nodes it is the mean over about 2,000 of them.
    """
    valid = view.graph.nodes.filter(col("class") < view.num_valid)
    population = count_rows(valid)
    if population > MAX_EXACT_NODES:
        share = SAMPLE_SIZE / population
        valid = valid.filter(hashed(col("number")) < int(PRIMES[0] * share))
    chosen = view.graph.engine.keep(valid.select(origin="node", own="class"))
    pairs = view.graph.pairs
    near = pairs.join(chosen, left_on="source", right_on="origin")
    near = view.graph.engine.keep(near.select("own", origin="source", target="target"))
    far = (
        near.join(pairs.select(target="source", far="target"), on="target", how="inner")
        .select("origin", "own", "far")
        .filter(col("far") != col("origin"))
        .unique(["origin", "far"])
        .join(near.select("origin", far="target"), on=["origin", "far"], how="anti")
        .join(view.graph.nodes.select(far="node", other="class"), on="far")
        .filter(col("other") < view.num_valid)
    )
    same = when(col("own") == col("other")).then(lit(1.0)).otherwise(lit(0.0))
    fractions = far.with_columns(fraction=same).group_by("origin")
    values = fractions.agg(col("fraction").mean())
    [row] = collect(
        values.select(
            col("fraction").mean().alias("mean"),
            col("fraction").std(ddof=1).alias("std"),
            nw.len().alias("count"),
        )
    )
    if not row["count"]:
        return Estimate(math.nan, math.nan, math.nan)
    size = count_rows(chosen)
    std = float(row["std"]) if row["count"] > 1 else 0.0
    error = std / math.sqrt(row["count"]) * math.sqrt(1 - size / population)
    return Estimate(float(row["mean"]), std, error)


def aggregation_homophily(view: FrameView) -> float:
    """The fraction of nodes that are nearest to their own class after averaging."""
    num_nodes = view.statistics.nodes
    if (num_nodes > 0).sum() < 2:
        return math.nan
    own = view.out.nodes.filter(col("class") < view.num_valid)
    itself = own.select("node", "class", "degree", other="class").with_columns(
        count=lit(1).cast(nw.Int64)
    )
    columns = ["node", "class", "other", "count", "degree"]
    counts = view.out.counts.filter(col("other") < view.num_valid)
    rows = nw.concat(
        [counts.join(own, on="node").select(columns), itself.select(columns)]
    )
    size = 1.0 + col("degree").cast(nw.Float64)
    shares = rows.with_columns(share=col("count") / size)
    cells = collect(shares.group_by("class", "other").agg(col("share").sum()))
    sums = np.zeros((view.num_valid,) * 2)
    for cell in cells:
        sums[cell["class"], cell["other"]] = cell["share"]
    num_others = num_nodes.sum() - num_nodes
    within = sums / num_nodes.clip(min=1)[:, None]
    between = (sums.sum(0) - sums) / num_others.clip(min=1)[:, None]
    present = np.flatnonzero(sums)
    margin = (within - between).reshape(-1)[present]
    position = col("class") * view.num_valid + col("other")
    weight = position.replace_strict(
        present.tolist(),
        margin.tolist(),
        default=lit(0.0),
        return_dtype=nw.Float64,
    )
    totals = shares.with_columns(excess=weight * col("share")).group_by("node")
    nearest = totals.agg(col("excess").sum()).filter(col("excess") >= -TOLERANCE)
    return safe_divide(count_rows(nearest), num_nodes.sum())


def duplicate_nodes(view: FrameView) -> float:
    """The fraction of nodes with the same neighbour set as another node."""
    sizes = view.neighbour_sets.group_by(*SET).agg(nw.len().alias("members"))
    repeated = sizes.filter(col("members") > 1).select(col("members").sum())
    [row] = collect(repeated)
    return safe_divide(row["members"] or 0, count_rows(view.graph.nodes))


def duplicate_label_agreement(view: FrameView) -> float:
    """The mean over nodes of the fraction of their duplicates with the same label."""
    valid = view.neighbour_sets.filter(col("class") < view.num_valid)
    by_class = valid.group_by(*SET, "class").agg(nw.len().alias("same"))
    by_class = view.graph.engine.keep(by_class.with_columns(col("same").cast(nw.Int64)))
    sizes = by_class.group_by(*SET).agg(col("same").sum().alias("members"))
    sizes = sizes.with_columns(col("members").cast(nw.Float64))
    pairs = by_class.join(sizes.filter(col("members") > 1), on=list(SET))
    fraction = col("same") * (col("same") - 1) / (col("members") - 1.0)
    sums = pairs.with_columns(fraction=fraction)
    [row] = collect(sums.select(col("fraction").sum(), col("same").sum()))
    return safe_divide(row["fraction"] or 0, row["same"] or 0)


def duplicate_test_nodes(view: FrameView) -> float:
    """The fraction of test nodes that have a duplicate among the train nodes."""
    if "part" not in view.graph.nodes.collect_schema().names():
        return math.nan
    labelled = col("class") < view.graph.num_classes
    tests = count_rows(view.graph.nodes.filter(labelled, col("part") == "test"))
    sets = view.neighbour_sets.filter(labelled)
    train = sets.filter(col("part") == "train").select(*SET)
    test = sets.filter(col("part") == "test")
    found = count_rows(test.join(train, on=list(SET), how="semi"))
    return safe_divide(found, tests)


SET = ("first", "second", "size")
"""Columns that are the same for nodes with the same neighbours."""

VIEW_MEASURES: dict[str, Callable[[FrameView], float | Estimate]] = {
    "two_hop_node_homophily": two_hop_node_homophily,
    "aggregation_homophily": aggregation_homophily,
    "in_node_homophily": in_node_homophily,
    "shared_target_homophily": shared_target_homophily,
    "shared_source_homophily": shared_source_homophily,
    "duplicate_nodes": duplicate_nodes,
    "duplicate_label_agreement": duplicate_label_agreement,
    "duplicate_test_nodes": duplicate_test_nodes,
}
"""Measures that need a pass of their own."""

FRAME_MEASURES = {**ONE_PASS_MEASURES, **MATRIX_MEASURES, **VIEW_MEASURES}
