"""`unalike predict`: a saved model on nodes that are new, or known."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import tyro
from rich.markup import escape
from rich.table import Table

from unalike.cli.console import OUT, print_json, print_notes, progress_bar
from unalike.datasets import find
from unalike.device import choose_device
from unalike.errors import UserError
from unalike.importing.readers import InputTables
from unalike.inference.explain import explain as explained
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
GUESS = TableColumns()
SHOWN = 20
"""Nodes that are printed or explained, where nobody names them."""


@dataclass
class Collected:
    """What is told of the nodes that were scored."""

    top: int
    nodes: int = 0
    rows: list[dict[str, Any]] = field(default_factory=list)
    reasons: list[dict[str, Any]] = field(default_factory=list)

    def add_batch(self, piece: ScoredBatch, model: Model | None, most: int) -> None:
        """Note a piece: its first nodes and, given the model, why they score so."""
        self.nodes += len(piece.names)
        room = max(0, most - len(self.rows))
        self.rows += to_record_batch(piece.names, piece.prediction)[:room].to_pylist()
        if model is None or not room:
            return
        model.check_row_wise("be explained")
        assert piece.prepared is not None
        some = piece.prepared.head(min(room, len(piece.names)))
        names = piece.names[:room].to_pylist()
        for name, why in zip(names, explained(model, some), strict=True):
            told = asdict(why)
            told["pushes"] = told["pushes"][: self.top]
            self.reasons.append({"id": name, **told, "inputs": len(why.pushes)})


def command(
    model: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")],
    *,
    edges: Annotated[Names, tyro.conf.arg(metavar="EDGES...")] = (),
    nodes: Annotated[Names, tyro.conf.arg(metavar="NODES...")] = (),
    columns: Annotated[TableColumns, tyro.conf.arg(name="", prefix_name=False)] = GUESS,
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
        columns: Which columns are meant.
        graph: The dataset or stored graph that the model was trained on.
        ids: Score these nodes alone.
        out: File for the scores, .parquet or .csv; the first ones are printed without.
        explain: Tell which neighbours and features pushed each prediction.
        top: How many of them to tell.
        device: cpu, cuda, or auto: a GPU where there is one.
        data: Folder of the raw files and stored graphs.
        json: Print one JSON document instead of a table.
    """
    if (graph is None) == (not edges and not nodes):
        raise UserError("Name tables of new nodes (--edges, --nodes), or a --graph.")
    if out is not None:
        check_output_path(out)
    began = time.perf_counter()
    loaded = load_model(model, device=choose_device(device))
    told, counts = Collected(top), dict[str, Any]()
    with progress_bar() as bar, ExitStack() as open_files:
        if graph is not None:
            pieces = score_known_nodes(loaded, find(graph, data), ids, bar)
        else:
            beside = None if out is None else out.absolute().parent
            folder = Path(open_files.enter_context(TemporaryDirectory(dir=beside)))
            tables = InputTables.open(edges, nodes, columns.header)
            new = NewNodeTables.read(loaded, tables, columns, folder, bar)
            counts = counts_of(new)
            pieces = score_new_nodes(new, ids, bar)
        add = (
            open_files.enter_context(open_score_file(out)) if out is not None else None
        )
        for piece in pieces:
            told.add_batch(piece, loaded if explain else None, len(ids) or SHOWN)
            if add is not None:
                add(to_record_batch(piece.names, piece.prediction))
    counts = {"nodes": told.nodes, **counts, "seconds": time.perf_counter() - began}
    show(told, counts, out, json=json)


def counts_of(new: NewNodeTables) -> dict[str, Any]:
    """What the tables of new nodes held."""
    edges = new.edges
    return {
        "edges": edges.num_edges_kept,
        "unknown_neighbours": edges.num_unknown,
        "edges_without_new_nodes": edges.num_edges_ignored,
        "nodes_without_neighbours": new.num_isolated,
    }


def show(
    told: Collected, counts: dict[str, Any], out: Path | None, *, json: bool
) -> None:
    """Print the answer, or where it was written."""
    size = None if out is None else out.stat().st_size
    if json:
        written = {} if out is None else {"file": str(out), "bytes": size}
        rows = told.rows if out is None else []
        print_json({**counts, **written, "scores": rows, "explanations": told.reasons})
        return
    print_notes(remarks(counts))
    for reason in told.reasons:
        OUT.print(headline(reason), soft_wrap=True, markup=False)
        OUT.print(attribution_table(reason))
    if not told.reasons and out is None:
        OUT.print(score_table(told.rows))
    where = "" if size is None else f" in {out}, {size:,} bytes"
    nodes, seconds = counts["nodes"], counts["seconds"]
    speed = f", {nodes / seconds:,.0f} nodes/s" if nodes > SHOWN else ""
    noun = "node" if nodes == 1 else "nodes"
    OUT.print(f"{nodes:,} {noun}{where}, {seconds:.1f} s{speed}", markup=False)


def remarks(counts: dict[str, Any]) -> Iterator[str]:
    """What the owner of the tables should know."""
    words = {
        "unknown_neighbours": "neighbours that the model does not know, left out",
        "edges_without_new_nodes": "edges without a new node, left out",
        "nodes_without_neighbours": "new nodes without a known neighbour",
    }
    for name, what in words.items():
        if counts.get(name):
            yield f"{what}: {counts[name]:,}"


def score_table(rows: list[dict[str, Any]]) -> Table:
    """The first nodes with their probabilities."""
    table = Table(box=None, pad_edge=False)
    for heading in rows[0] if rows else ():
        table.add_column(escape(heading), justify="right")
    for row in rows:
        known, shares = list(row.values())[:2], list(row.values())[2:]
        numbers = (f"{share:.3f}" for share in shares)
        table.add_row(*(escape(str(one)) for one in known), *numbers)
    return table


def headline(reason: dict[str, Any]) -> str:
    """What one node was given, and how surely."""
    return (
        f"{reason['id']}: {reason['label']} with {reason['probability']:.3f}, "
        f"log-odds {reason['log_odds']:+.2f} against {reason['against']}"
    )


def attribution_table(reason: dict[str, Any]) -> Table:
    """Why one node was given its class."""
    table = Table(box=None, pad_edge=False)
    for heading in ("share", "without it", "", "", "value"):
        table.add_column(heading, justify="left" if not heading else "right")
    for push in reason["pushes"]:
        table.add_row(
            f"{push['share']:+.2f}",
            f"{reason['log_odds'] - push['change']:+.2f}",
            push["kind"],
            escape(str(push["name"])),
            f"{push['value']:g}",
        )
    others = reason["log_odds"] - sum(push["share"] for push in reason["pushes"])
    table.add_row(f"{others:+.2f}", "", "all else", "", "")
    return table
