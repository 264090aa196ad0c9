"""`unalike demo`: import two CSV files, measure the graph and compare methods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
from rich.padding import Padding

from unalike.cli.console import OUT, bold, print_json, print_notes, progress_bar
from unalike.data.graph import Graph
from unalike.data.store import StoredGraph, open_graph
from unalike.datasets.twins import twin
from unalike.device import best_device
from unalike.display import TextTable
from unalike.errors import UserError
from unalike.experiments.run import RunOptions, run
from unalike.files import (
    atomic_write,
    read_manifest,
    remove_folder,
    write_errors,
    write_manifest,
)
from unalike.formatting import format_mean_std
from unalike.importing.api import import_graph
from unalike.importing.options import ImportOptions
from unalike.measures import measure
from unalike.methods import METHODS
from unalike.options import with_options
from unalike.progress import Progress
from unalike.reports.plotting import plot_scores, require_matplotlib, save_figure

NODES = 4000
SHOWN = ("edge_homophily", "class_homophily", "monophily", "two_hop_node_homophily")
EPOCHS = 100
WRITTEN = ("edges.csv", "nodes.csv", "graph", "demo.png")
"""Files and folders of a demo."""
INDENT = (0, 0, 0, 3)


def command(*, out: Path = Path("demo"), json: bool = False) -> None:
    """Generate a social network, import it, measure it and compare methods on it.

    Nothing is downloaded. The two CSV files, the stored graph and a plot of the
    comparison are written to a folder.

    Example: unalike demo --out demo

    Args:
        out: Folder of the demo; an earlier demo in it is replaced.
        json: Print one JSON document instead of text.
    """
    say = (lambda *_: None) if json else OUT.print
    prepare_folder(out)
    with progress_bar() as bar:
        files = write_tables(twin("pokec", num_nodes=NODES).load(), out)
        about = ": who follows whom, and columns about each user."
        say(bold("1. Two tables", about))
        say(f"   {files[0]}, {files[1]}\n")
        remove_folder(out / "graph")
        options = ImportOptions(label="kind")
        import_graph(*files, out=out / "graph", options=options, progress=bar)
        stored = open_graph(out / "graph")
        say(bold("2. Import", ": a stored graph, opened by mapping its arrays."))
        say(f"   unalike import {files[0]} --nodes {files[1]} --label kind --out …")
        sizes = stored.metadata
        say(
            f"   {sizes['num_nodes']:,} nodes, {sizes['num_edges']:,} edges, "
            f"{sizes['num_features']} features, {sizes['num_classes']} classes\n"
        )
        say(bold("3. Measure", ": are neighbours alike?"))
        values = measure(stored.graph, only=SHOWN)
        rows = [[name.replace("_", " "), f"{values[name]:.3f}"] for name in SHOWN]
        say(Padding(TextTable.from_rows("", ["", ""], rows), INDENT))
        results = compare(stored, bar)
    about = ": five splits each, the best validation epoch counts."
    say(bold("\n4. Train", about))
    say(Padding(score_table(results), INDENT))
    picture = draw_scores(results, out / "demo.png")
    shown = f"{picture} shows it. " if picture else ""
    say(f"\n   {shown}LINKX combines LINK and MLP.")
    if json:
        path = str(picture) if picture else None
        print_json({"graph": str(stored.folder), "picture": path} | results)


def prepare_folder(out: Path) -> None:
    """Make the folder and list what a demo writes; other files are not replaced."""
    written = read_manifest(out)
    for name in WRITTEN:
        if name not in written and (out / name).exists():
            raise UserError(
                f"{out / name} exists and is not of a demo; name another folder with "
                "--out."
            )
    with write_errors(out):
        out.mkdir(parents=True, exist_ok=True)
        write_manifest(out, WRITTEN)


def draw_scores(results: dict[str, dict[str, Any]], path: Path) -> Path | None:
    """Draw the comparison; without matplotlib there is a note and no picture."""
    try:
        require_matplotlib()
    except UserError as error:
        print_notes(f"no picture was drawn. {error}")
        return None
    tests = {name: row["tests"] for name, row in results.items()}
    save_figure(plot_scores(tests), path)
    return path


def write_tables(graph: Graph, out: Path) -> tuple[Path, Path]:
    """Write a graph as an edge list and a node table with string ids."""
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
        **{f"x{index}": column for index, column in enumerate(features)},
    }
    files = (out / "edges.csv", out / "nodes.csv")
    for file, columns in zip(files, (edges, nodes), strict=True):
        with atomic_write(file) as partial:
            pyarrow.csv.write_csv(pa.table(columns), partial)
    return files


def compare(stored: StoredGraph, progress: Progress) -> dict[str, dict[str, Any]]:
    """Test scores of LINKX, MLP, LINK and GCN with their defaults on all splits."""
    options = RunOptions(device=best_device(), progress=progress)
    rows = {}
    for name in ("mlp", "link", "gcn", "linkx"):
        method = with_options(METHODS[name](), {"epochs": EPOCHS}, name)
        results = run(stored, method, options=options)
        tests = [result.test for result in results]
        rows[name] = {"tests": tests, "seconds": results.seconds}
    return rows


def score_table(results: dict[str, dict[str, Any]]) -> TextTable:
    """Test scores and times of the methods."""
    headings = ("method", "test accuracy", "seconds")
    rows = [
        [name, format_mean_std(row["tests"]), f"{row['seconds']:.1f}"]
        for name, row in results.items()
    ]
    return TextTable.from_rows("", headings, rows, right=headings[1:])
