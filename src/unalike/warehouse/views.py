"""Leak-free columns per node by joins in an engine: structure and label histograms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import narwhals as nw
from narwhals import col, lit, when

from unalike.errors import UserError
from unalike.views.walks import BACK
from unalike.warehouse.frames import (
    Columns,
    Engine,
    FrameGraph,
    LazyFrame,
    filled,
    hashed,
    open_frames,
    reverse,
    to_native,
)

MAX_FOLDS, MAX_HOPS = 1_000, 2


def views(
    edges: Any,
    nodes: Any,
    *,
    label: str,
    source: str | None = None,
    target: str | None = None,
    id: str | None = None,
    split: str | None = None,
    fold: str | None = None,
    folds: int = 5,
    hops: int = 2,
    directed: bool = False,
    unknown: Literal["refuse", "drop"] = "refuse",
    seed: int = 0,
) -> Any:
    """Structure and label histograms of each node, as a table in the engine.

    The columns are those of the groups `structure` (without PageRank and triangles)
    and `labels` of `unalike.view_table`. In the row of a node no label of its fold is
    known, its own neither. Known labels are those of the train nodes of `split`, or all
    without it. `fold` is a column of folds; else 2 * `folds` are drawn.
    """
    if not 1 <= hops <= MAX_HOPS:
        raise UserError(f"hops is {hops}; an engine walks 1 or {MAX_HOPS} steps.")
    if not 1 <= folds <= MAX_FOLDS:
        raise UserError(f"folds is {folds}; it must be from 1 to {MAX_FOLDS:,}.")
    columns = Columns(
        source=source, target=target, id=id, label=label, split=split, fold=fold
    )
    with open_frames(
        edges, nodes, columns, directed=directed, unknown=unknown
    ) as graph:
        if fold is None:
            drawn = hashed(col("number"), seed=seed) % (2 * folds)
            folded = graph.engine.keep(graph.nodes.with_columns(fold=drawn))
            graph = replace(graph, nodes=folded)
        table = NodeTable(graph.nodes.select("node", "fold"))
        steps = Steps.of(graph)
        add_structure(table, graph, steps)
        add_label_histograms(table, graph, steps, hops)
        # The result outlives the tables that are dropped at the end.
        return to_native(Engine().keep(table.rows.select(*table.names), nodes), nodes)


@dataclass
class NodeTable:
    """A row for each node, to which columns are joined."""

    rows: LazyFrame
    names: list[str] = field(default_factory=lambda: ["node", "fold"])

    def add(self, frame: LazyFrame, columns: Mapping[str, nw.Expr]) -> None:
        """Join a frame by its column `source`, and add columns of what it has."""
        values = [n for n in frame.collect_schema().names() if n != "source"]
        joined = self.rows.join(frame, left_on="node", right_on="source", how="left")
        self.rows = joined.with_columns(*filled(values)).with_columns(**columns)
        self.names += columns
        self.rows = self.rows.select(*self.names)


@dataclass(frozen=True, eq=False)
class Steps:
    """Pairs of each step along edges without self-loops, and degrees by step."""

    engine: Engine
    pairs: Mapping[str, LazyFrame]
    degrees: LazyFrame
    """Nodes with `degree_s` and its logarithm `log_s` for each step s."""

    @classmethod
    def of(cls, graph: FrameGraph) -> Steps:
        """The step `a` of an undirected graph; `o` and `i` of a directed one."""
        pairs = graph.engine.keep(graph.pairs.filter(col("source") != col("target")))
        steps = {"o": pairs, "i": reverse(pairs)} if graph.directed else {"a": pairs}
        degrees = graph.nodes.select("node")
        for step, ends in steps.items():
            name = f"degree_{step}"
            counted = ends.group_by("source").agg(nw.len().alias(name))
            degrees = degrees.join(
                counted, left_on="node", right_on="source", how="left"
            )
            degrees = degrees.with_columns(col(name).fill_null(0).cast(nw.Float64))
            degrees = degrees.with_columns(**{f"log_{step}": log1p(col(name))})
        return cls(graph.engine, steps, graph.engine.keep(degrees))


def log1p(value: nw.Expr) -> nw.Expr:
    """log(1 + x)."""
    return (1.0 + value).log()


def share_of(value: nw.Expr, total: nw.Expr) -> nw.Expr:
    """The quotient, 0 where the total is 0."""
    return when(total > 0).then(value / total).otherwise(lit(0.0))


def add_structure(table: NodeTable, graph: FrameGraph, steps: Steps) -> None:
    """Degrees, self-loops, reciprocity, and degrees of neighbours."""
    names = {f"structure:log_degree:{s}": col(f"log_{s}") for s in steps.pairs}
    table.add(steps.degrees.rename({"node": "source"}), names)
    loops = graph.pairs.filter(col("source") == col("target"))
    loops = loops.select("source", loop=lit(1.0))
    table.add(loops, {"structure:self_loop": col("loop")})
    if graph.directed:
        table.add(*reciprocity(steps))
    means = {step: steps.engine.keep(near_degrees(steps, step)) for step in steps.pairs}
    for step, near in means.items():
        table.add(near, dict(near_columns(steps, step)))
        walks = {"two_steps": step, "there_and_back": BACK[step]}
        behind = {
            first: steps.engine.keep(degrees_behind(steps, first, near))
            for first in dict.fromkeys(walks.values())
        }
        for name, first in walks.items():
            columns = {
                f"structure:{name}:{step}:{other}": col(f"mean_{other}")
                for other in steps.pairs
            }
            table.add(behind[first], columns)


def degrees_behind(steps: Steps, first: str, near: LazyFrame) -> LazyFrame:
    """The mean over the ends of a first step of what is near to them."""
    columns = [f"mean_{other}" for other in steps.pairs]
    known = steps.degrees.select(target="node").join(
        near.rename({"source": "target"}), on="target", how="left"
    )
    known = known.with_columns(*filled(columns)).select("target", *columns)
    behind = steps.pairs[first].join(known, on="target").group_by("source")
    return behind.agg(col(*columns).mean())


def reciprocity(steps: Steps) -> tuple[LazyFrame, dict[str, nw.Expr]]:
    """The fraction of out-edges, and of in-edges, that run both ways."""
    both = steps.pairs["o"].join(steps.pairs["i"], on=["source", "target"], how="semi")
    counts = both.group_by("source").agg(nw.len().alias("both"))
    counts = counts.join(steps.degrees, left_on="source", right_on="node")
    return counts, {
        f"structure:reciprocity:{step}": share_of(col("both"), col(f"degree_{step}"))
        for step in steps.pairs
    }


def near_degrees(steps: Steps, step: str) -> LazyFrame:
    """Sums over neighbours of 1 / degree and of log degrees and their squares."""
    logs = [f"log_{other}" for other in steps.pairs]
    squares = {f"square_{o}": col(f"log_{o}") * col(f"log_{o}") for o in steps.pairs}
    inverse = share_of(lit(1.0), col(f"degree_{step}"))
    known = steps.degrees.rename({"node": "target"}).with_columns(
        share=inverse, **squares
    )
    near = steps.pairs[step].join(known, on="target").group_by("source")
    sums = near.agg(col("share").sum(), col(*logs, *squares).mean())
    return sums.rename({log: log.replace("log", "mean") for log in logs})


def near_columns(steps: Steps, step: str) -> Iterator[tuple[str, nw.Expr]]:
    """The share of neighbours' edges that lead here, and means and spreads."""
    yield f"structure:shared:{step}", log1p(col("share"))
    for other in steps.pairs:
        yield f"structure:mean:{step}:{other}", col(f"mean_{other}")
    for other in steps.pairs:
        mean = col(f"mean_{other}")
        variance = col(f"square_{other}") - mean * mean
        spread = when(variance > 0).then(variance).otherwise(lit(0.0)).sqrt()
        yield f"structure:spread:{step}:{other}", spread


def add_label_histograms(
    table: NodeTable, graph: FrameGraph, steps: Steps, hops: int
) -> None:
    """Known labels at the ends of walks, but those of a node's own fold."""
    classes = [f"class_{number}" for number in range(graph.num_classes)]
    folds = graph.nodes.select("fold", source="node")
    known = known_labels(graph)
    histograms = {
        step: Histogram.of(steps, ends, known, classes)
        for step, ends in steps.pairs.items()
    }
    for step, histogram in histograms.items():
        own = histogram.without_fold(folds.rename({"source": "target"}))
        add_histogram(table, own.rename({"target": "source"}), step, graph)
    for first in steps.pairs if hops > 1 else ():
        for second, histogram in histograms.items():
            degree = steps.degrees.select(degree=f"degree_{second}", target="node")
            pairs = steps.pairs[first].join(folds, on="source")
            ends = histogram.without_fold(pairs).join(degree, on="target")
            means = {f"{name}_mean": col(name) / col("degree") for name in classes}
            grouped = ends.with_columns(**means).group_by("source")
            sums = steps.engine.keep(grouped.agg(col(*classes, *means).sum()))
            add_histogram(table, sums.drop(*means), first + second, graph)
            shares = sums.select("source", **dict(zip(classes, means, strict=True)))
            add_histogram(table, shares, f"{first}{second}/mean", graph)


def known_labels(graph: FrameGraph) -> LazyFrame:
    """Train nodes with their fold and a column of 0 and 1 for each class."""
    labelled = graph.nodes.filter(col("class") < graph.num_classes)
    if "part" in graph.nodes.collect_schema().names():
        labelled = labelled.filter(col("part") == "train")
    one_hot = {
        f"class_{number}": when(col("class") == number)
        .then(lit(1.0))
        .otherwise(lit(0.0))
        for number in range(graph.num_classes)
    }
    return labelled.select("fold", target="node", **one_hot)


@dataclass(frozen=True, eq=False)
class Histogram:
    """Known labels of the neighbours of each node (`target`), by their fold."""

    classes: list[str]
    by_fold: LazyFrame
    total: LazyFrame

    @classmethod
    def of(
        cls, steps: Steps, pairs: LazyFrame, known: LazyFrame, classes: list[str]
    ) -> Histogram:
        """Count the labels at the ends of pairs."""
        ends = pairs.join(known, on="target").group_by("source", "fold")
        counts = ends.agg(col(*classes).sum()).rename({"source": "target"})
        by_fold = steps.engine.keep(counts)
        total = by_fold.group_by("target").agg(col(*classes).sum())
        return cls(classes, by_fold, steps.engine.keep(total))

    def without_fold(self, rows: LazyFrame) -> LazyFrame:
        """Rows (target, fold, …) with the labels around the target outside the fold."""
        hidden = {name: f"{name}_hidden" for name in self.classes}
        joined = rows.join(self.total, on="target").join(
            self.by_fold.rename(hidden), on=["target", "fold"], how="left"
        )
        joined = joined.with_columns(*filled(list(hidden.values())))
        joined = joined.with_columns(
            *(col(name) - col(other) for name, other in hidden.items())
        )
        return joined.drop(*hidden.values(), "fold")


def add_histogram(
    table: NodeTable, sums: LazyFrame, walk: str, graph: FrameGraph
) -> None:
    """log(1 + count) and smoothed share of every class, and log(1 + total)."""
    counts = [col(f"class_{number}") for number in range(graph.num_classes)]
    total = nw.sum_horizontal(*counts)
    names, smooth = graph.class_names, 1 / graph.num_classes
    columns = {
        f"labels:{walk}:log_count_{name}": log1p(count)
        for name, count in zip(names, counts, strict=True)
    }
    columns |= {
        f"labels:{walk}:share_{name}": (count + smooth) / (total + 1.0)
        for name, count in zip(names, counts, strict=True)
    }
    table.add(sums, {**columns, f"labels:{walk}:log_total": log1p(total)})
