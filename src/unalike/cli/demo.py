"""`unalike demo`: the main job, from two CSV files to a comparison of methods."""

from __future__ import annotations

import shutil
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pyarrow as pa
import pyarrow.csv
from rich.table import Table

from unalike.cli.console import OUT, print_json, progress_bar
from unalike.data.graph import Graph
from unalike.data.store import StoredGraph, open_graph
from unalike.datasets.twins import twin
from unalike.device import best_device
from unalike.experiments.run import RunOptions, run
from unalike.importing.api import import_graph
from unalike.importing.options import ImportOptions
from unalike.measures import measure
from unalike.methods.base import Method
from unalike.methods.gcn import GCN
from unalike.methods.link import LINK
from unalike.methods.linkx import LINKX
from unalike.methods.mlp import MLP
from unalike.progress import Progress
from unalike.reports.plotting import plot_scores, save_figure
from unalike.training.settings import Training

NODES = 4000
SHOWN = ("edge_homophily", "class_homophily", "monophily", "two_hop_node_homophily")
EPOCHS = 100


def command(*, out: Path = Path("demo"), json: bool = False) -> None:
    """Make up a social network, import it, measure it and compare methods on it.

    Nothing is downloaded. The two CSV files, the stored graph and a picture of the
    comparison are left in a folder to look at.

    Example: unalike demo --out demo

    Args:
        out: Folder for what the demo makes; an earlier demo in it is replaced.
        json: Print one JSON document instead of the story.
    """
    say = OUT.print if not json else _nothing
    with progress_bar() as bar:
        files = write_tables(twin("pokec", num_nodes=NODES).load(), out)
        say("[bold]1. Two tables[/]: who follows whom, and what is known of each user.")
        say(f"   {files[0]}, {files[1]}\n")
        stored = import_tables(files, out / "graph", bar)
        say("[bold]2. Import[/]: a stored graph, opened by mapping its arrays.")
        say(f"   unalike import {files[0]} --nodes {files[1]} --label kind --out …")
        say(f"   {_count(stored)}\n")
        told = measure(stored.graph)
        say("[bold]3. Measure[/]: are neighbours alike?")
        say(_measures(told))
        results = compare(stored, bar)
    say("\n[bold]4. Train[/]: five splits each, the best validation epoch counts.")
    say(_results(results))
    picture = out / "demo.png"
    save_figure(
        plot_scores({name: row["tests"] for name, row in results.items()}), picture
    )
    say(f"\n   {picture} shows it. LINKX joins what its parents LINK and MLP know.")
    if json:
        print_json({"graph": str(stored.folder), "picture": str(picture)} | results)


def write_tables(graph: Graph, out: Path) -> tuple[Path, Path]:
    """The graph as a user would bring it: string ids, an edge list, a node table."""
    out.mkdir(parents=True, exist_ok=True)
    names = pa.array([f"user-{node:05d}" for node in range(graph.num_nodes)])
    ends = (graph.adjacency.row_indices, graph.adjacency.indices)
    edges = {
        end: names.take(pa.array(ids.numpy()))
        for end, ids in zip(("source", "target"), ends, strict=True)
    }
    features = graph.features.to_dense().double().T.numpy()
    nodes = {
        "id": names,
        "kind": pa.array(["ab"[label] for label in graph.labels.tolist()]),
        **{f"x{place}": column for place, column in enumerate(features)},
    }
    files = (out / "edges.csv", out / "nodes.csv")
    for file, columns in zip(files, (edges, nodes), strict=True):
        pyarrow.csv.write_csv(pa.table(columns), file)
    return files


def import_tables(
    files: tuple[Path, Path], folder: Path, progress: Progress
) -> StoredGraph:
    """Import the tables, in place of an earlier demo."""
    if (folder / "graph.json").is_file():
        shutil.rmtree(folder)
    edges, nodes = files
    options = ImportOptions(label="kind")
    import_graph([edges], [nodes], out=folder, options=options, progress=progress)
    return open_graph(folder)


def compare(stored: StoredGraph, progress: Progress) -> dict[str, dict[str, Any]]:
    """LINKX, its two parents and a GCN with their defaults, on all splits."""
    options = RunOptions(device=best_device(), progress=progress)
    short = Training(epochs=EPOCHS)
    methods: dict[str, Method] = {
        "mlp": MLP(training=short),
        "link": LINK(training=short),
        "gcn": GCN(training=short),
        "linkx": LINKX(training=short),
    }
    rows = {}
    for name, method in methods.items():
        results = run(stored, method, options=options)
        tests = [result.test for result in results]
        seconds = sum(result.seconds for result in results)
        rows[name] = {"tests": tests, "seconds": seconds}
    return rows


def _count(stored: StoredGraph) -> str:
    told = stored.metadata
    return (
        f"{told['num_nodes']:,} nodes, {told['num_edges']:,} edges, "
        f"{told['num_features']} features, {told['num_classes']} classes"
    )


def _measures(told: dict[str, Any]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 1))
    for name in SHOWN:
        value = getattr(told[name], "value", told[name])
        table.add_row("", name.replace("_", " "), f"{value:.3f}")
    return table


def _results(rows: dict[str, dict[str, Any]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 1))
    for heading in ("", "method", "test accuracy", "seconds"):
        table.add_column(heading, justify="right" if heading[:1] in "ts" else "left")
    for name, row in rows.items():
        accuracy = f"{mean(row['tests']):.1f} ± {stdev(row['tests']):.1f}"
        table.add_row("", name, accuracy, f"{row['seconds']:.1f}")
    return table


def _nothing(*_: object) -> None:
    pass
