"""`unalike predict`: score new or known nodes by a saved model."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import tyro

from unalike.cli.console import (
    OUT,
    print_json,
    print_notes,
    print_table,
    progress_bar,
)
from unalike.datasets import find
from unalike.device import choose_device
from unalike.display import TextTable
from unalike.errors import UserError
from unalike.importing.readers import InputTables
from unalike.inference.explain import explain as explain_rows
from unalike.inference.model import Model
from unalike.inference.model_file import load_model
from unalike.inference.new_node_tables import NewNodeTables, TableColumns
from unalike.inference.predict import (
    ScoredBatch,
    check_output_path,
    open_score_file,
    score_known_nodes,
    score_new_nodes,
    to_record_batch,
)

Names = tuple[str, ...]
DEFAULT_COLUMNS = TableColumns()
MAX_PRINTED = 20
"""Nodes that are printed or explained without --ids."""


@dataclass
class Collected:
    """Scores and explanations to print."""

    top: int
    """Inputs in an explanation."""
    max_nodes: int
    num_nodes: int = 0
    """All nodes that were scored."""
    rows: list[dict[str, Any]] = field(default_factory=list)
    explanations: list[dict[str, Any]] = field(default_factory=list)

    def add_batch(self, batch: ScoredBatch, model: Model | None) -> None:
        """Add the first nodes of a batch, with explanations if there is a model."""
        self.num_nodes += len(batch.names)
        limit = max(0, self.max_nodes - len(self.rows))
        self.rows += to_record_batch(batch.names, batch.prediction)[:limit].to_pylist()
        if model is None or not limit:
            return
        model.check_row_wise("be explained")
        assert batch.prepared is not None
        rows = batch.prepared.head(min(limit, len(batch.names)))
        known = None if batch.known is None else batch.known[:limit]
        names = batch.names[:limit].to_pylist()
        explanations = explain_rows(model, rows, known)
        for name, explanation in zip(names, explanations, strict=True):
            document = asdict(explanation)
            document["pushes"] = document["pushes"][: self.top]
            inputs = len(explanation.pushes)
            self.explanations.append({"id": name, **document, "inputs": inputs})


def command(
    model: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")],
    *,
    edges: Annotated[Names, tyro.conf.arg(metavar="EDGES...")] = (),
    nodes: Annotated[Names, tyro.conf.arg(metavar="NODES...")] = (),
    columns: Annotated[
        TableColumns, tyro.conf.arg(name="", prefix_name=False)
    ] = DEFAULT_COLUMNS,
    graph: str | None = None,
    ids: Annotated[Names, tyro.conf.arg(metavar="ID...")] = (),
    out: Path | None = None,
    explain: bool = False,
    top: int = 5,
    device: str = "auto",
    data: Path | None = None,
    json: bool = False,
) -> None:
    """Predict the classes of nodes by a model that `unalike train --save` wrote.

    New nodes need edges to known ones and a table with the columns that the model was
    trained on. With --graph the nodes that it was trained on are scored themselves.

    Example: unalike predict model.safetensors --edges new-edges.csv --nodes new.csv

    Args:
        model: The file of the model.
        edges: Tables of edges between new nodes and known ones.
        nodes: Tables of the new nodes: their ids, and columns that become features.
        columns: Names of columns.
        graph: The dataset or stored graph that the model was trained on.
        ids: Score only these nodes.
        out: File for the scores, .parquet or .csv; without it the first are printed.
        explain: Print the neighbours, features and views behind each prediction.
        top: Number of neighbours, features and views in an explanation.
        device: cpu, cuda, or auto: a GPU where there is one.
        data: Folder of the raw files and stored graphs.
        json: Print one JSON document instead of a table.
    """
    if (graph is None) == (not edges and not nodes):
        raise UserError("Name tables of new nodes (--edges, --nodes), or a --graph.")
    if out is not None:
        check_output_path(out)
    start = time.perf_counter()
    loaded = load_model(model, device=choose_device(device))
    collected = Collected(top, len(ids) or MAX_PRINTED)
    counts: dict[str, Any] = {}
    with progress_bar() as bar, ExitStack() as open_files:
        if graph is not None:
            batches = score_known_nodes(loaded, find(graph, data), ids, bar)
        else:
            parent = None if out is None else out.absolute().parent
            folder = Path(open_files.enter_context(TemporaryDirectory(dir=parent)))
            tables = InputTables.open(edges, nodes, columns.header)
            new = NewNodeTables.read(loaded, tables, columns, folder, bar)
            counts = counts_of(new)
            batches = score_new_nodes(new, ids, bar)
        add = (
            open_files.enter_context(open_score_file(out)) if out is not None else None
        )
        for batch in batches:
            collected.add_batch(batch, loaded if explain else None)
            if add is not None:
                add(to_record_batch(batch.names, batch.prediction))
    seconds = time.perf_counter() - start
    counts = {"nodes": collected.num_nodes, **counts, "seconds": seconds}
    print_scores(collected, counts, out, json=json)


def counts_of(new: NewNodeTables) -> dict[str, Any]:
    """Counts of edges and nodes in the tables of new nodes."""
    edges = new.edges
    return {
        "edges": edges.num_edges_kept,
        "unknown_neighbours": edges.num_unknown,
        "edges_without_new_nodes": edges.num_edges_ignored,
        "nodes_without_neighbours": new.num_isolated,
    }


def print_scores(
    collected: Collected, counts: dict[str, Any], out: Path | None, *, json: bool
) -> None:
    """Print scores and explanations, or the path and size of the score file."""
    size = None if out is None else out.stat().st_size
    if json:
        written = {} if out is None else {"file": str(out), "bytes": size}
        rows = collected.rows if out is None else []
        scores = {"scores": rows, "explanations": collected.explanations}
        print_json({**counts, **written, **scores})
        return
    print_notes(*notes(counts))
    for explanation in collected.explanations:
        OUT.print(headline(explanation), soft_wrap=True)
        print_table(attribution_table(explanation))
    if not collected.explanations and out is None and collected.rows:
        print_table(score_table(collected.rows))
    where = "" if size is None else f" in {out}, {size:,} bytes"
    nodes, seconds = counts["nodes"], counts["seconds"]
    speed = f", {nodes / seconds:,.0f} nodes/s" if nodes > MAX_PRINTED else ""
    noun = "node" if nodes == 1 else "nodes"
    OUT.print(f"{nodes:,} {noun}{where}, {seconds:.1f} s{speed}")


def notes(counts: dict[str, Any]) -> Iterator[str]:
    """Notes about edges and nodes that were ignored."""
    texts = {
        "unknown_neighbours": "neighbours that the model does not know, left out",
        "edges_without_new_nodes": "edges without a new node, left out",
        "nodes_without_neighbours": "new nodes without a known neighbour",
    }
    for name, text in texts.items():
        if counts.get(name):
            yield f"{text}: {counts[name]:,}"


def score_table(rows: list[dict[str, Any]]) -> TextTable:
    """Nodes with their classes and probabilities."""
    headings = list(rows[0])
    cells = [
        [
            f"{value:.3f}" if i > 1 else str(value)
            for i, value in enumerate(row.values())
        ]
        for row in rows
    ]
    return TextTable.from_rows("", headings, cells, right=headings)


def headline(explanation: dict[str, Any]) -> str:
    """The class of a node with its probability and log-odds."""
    return (
        f"{explanation['id']}: {explanation['label']} with "
        f"{explanation['probability']:.3f}, log-odds {explanation['log_odds']:+.2f} "
        f"against {explanation['against']}"
    )


def attribution_table(explanation: dict[str, Any]) -> TextTable:
    """Contributions of the inputs of a node to the log-odds of its class."""
    log_odds, inputs = explanation["log_odds"], explanation["pushes"]
    rows = [
        [
            f"{one['share']:+.2f}",
            f"{log_odds - one['change']:+.2f}",
            one["kind"],
            str(one["name"]),
            f"{one['value']:g}",
        ]
        for one in inputs
    ]
    others = log_odds - sum(one["share"] for one in inputs)
    rows.append([f"{others:+.2f}", "", "all else", "", ""])
    headings = ("share", "without it", "", "", "value")
    right = ("share", "without it", "value")
    return TextTable.from_rows("", headings, rows, right=right)
