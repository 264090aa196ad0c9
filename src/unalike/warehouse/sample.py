"""A sample of a graph in an engine as a stored graph, for advise, tune and train."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import narwhals as nw
from narwhals import col, lit, when

from unalike.errors import UserError
from unalike.importing.api import import_graph
from unalike.importing.ids import MAX_NODES
from unalike.importing.options import ImportOptions, ImportSummary
from unalike.warehouse.frames import (
    NODE,
    Columns,
    between,
    hashed,
    open_frames,
    reverse,
)

PART = "unalike_part"
"""Column of the split of a sample."""


def sample(
    edges: Any,
    nodes: Any,
    size: int,
    *,
    out: str | Path,
    label: str,
    source: str | None = None,
    target: str | None = None,
    id: str | None = None,
    directed: bool = False,
    unknown: Literal["refuse", "drop"] = "refuse",
    seed: int = 0,
    options: ImportOptions | None = None,
) -> ImportSummary:
    """Store a sample of a graph: labelled nodes, all their edges, and what they reach.

    `size` labelled nodes are drawn, half for train, a quarter each for valid and test.
    Their neighbours come along with all edges among them; half of those that have a
    label are train nodes too, so that a node of the sample knows as many labels around
    it as in the whole graph. Other options of the import are in `options`.
    """
    if not 1 <= size <= MAX_NODES:
        raise UserError(f"size is {size}; it must be from 1 to {MAX_NODES:,}.")
    columns = Columns(source=source, target=target, id=id, label=label)
    with open_frames(
        edges, nodes, columns, directed=directed, unknown=unknown
    ) as graph:
        keep = graph.engine.keep
        draw = hashed(col("number"), seed=seed)
        drawn = graph.nodes.with_columns(draw=draw)
        labelled = drawn.filter(col("class") < graph.num_classes)
        core = keep(labelled.sort("draw").head(size).select("node", "draw"))
        reached = [
            pairs.join(core, left_on="source", right_on="node", how="semi").select(
                node="target"
            )
            for pairs in (graph.pairs, reverse(graph.pairs))
        ]
        reached_or_core = nw.concat([*reached, core.select("node")])
        chosen = reached_or_core.unique("node").join(drawn, on="node")
        parts = keep(with_parts(chosen, core, graph.num_classes))
        rows = graph.node_rows.join(parts.rename({"node": NODE}), on=NODE)
        chosen_options = replace(
            options or ImportOptions(),
            source="source",
            target="target",
            id=id,
            label=label,
            directed=directed,
            split=PART,
        )
        return import_graph(
            between(graph.pairs, parts).to_native(),
            rows.drop(NODE).to_native(),
            out=out,
            options=chosen_options,
        )


def with_parts(nodes: Any, core: Any, num_classes: int) -> Any:
    """The part of each node of a sample, by what was drawn for it."""
    core = core.select("node", is_core=lit(1))
    quarter, is_core = col("draw") % 4, col("is_core").fill_null(0) == 1
    of_core = (
        when(quarter < 2)
        .then(lit("train"))
        .otherwise(when(quarter == 2).then(lit("valid")).otherwise(lit("test")))
    )
    labelled = col("class") < num_classes
    of_others = when(labelled & (quarter < 2)).then(lit("train")).otherwise(lit(""))
    part = when(is_core).then(of_core).otherwise(of_others)
    joined = nodes.join(core, on="node", how="left")
    return joined.with_columns(**{PART: part}).select("node", PART)
