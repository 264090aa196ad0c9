"""`unalike import`: convert edge lists and node tables to a stored graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, make_dataclass
from pathlib import Path
from typing import Annotated, get_type_hints

import tyro

from unalike.cli.console import OUT, print_json, print_output, progress_bar
from unalike.data.store import verify_graph
from unalike.datasets import DATASETS
from unalike.datasets.twins import TWINS
from unalike.display import TextTable
from unalike.errors import UserError
from unalike.importing.api import import_graph
from unalike.importing.options import Column, Columns, ImportOptions, ImportSummary
from unalike.importing.readers import TableInput
from unalike.importing.sql import SqlQuery

MAX_CLASSES = 10
"""Classes with a line of their own in the summary."""

Names = tuple[str, ...]

DIRECTION = tyro.conf.create_mutex_group(required=False)
TYRO_ARGS = {
    Column: tyro.conf.arg(metavar="COLUMN"),
    Columns: tyro.conf.arg(metavar="COLUMN..."),
    Columns | None: tyro.conf.arg(metavar="COLUMN..."),
    bool: DIRECTION,
}
"""Arguments of tyro by the type of an option."""

TYPES = get_type_hints(ImportOptions)
FLAGS = make_dataclass(
    "Flags",
    [
        (field.name, Annotated[TYPES[field.name], TYRO_ARGS[TYPES[field.name]]], field)
        for field in fields(ImportOptions)
        if TYPES[field.name] in TYRO_ARGS
    ],
    bases=(ImportOptions,),
    frozen=True,
    kw_only=True,
)
"""`ImportOptions` with arguments of tyro, which takes the type of the default."""

DEFAULT_OPTIONS: ImportOptions = FLAGS()


def command(
    edges: Annotated[
        Names, tyro.conf.Positional, tyro.conf.arg(metavar="EDGES...")
    ] = (),
    /,
    *,
    nodes: Annotated[Names, tyro.conf.arg(metavar="NODES...")] = (),
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
    options: Annotated[
        ImportOptions, tyro.conf.arg(name="", prefix_name=False)
    ] = DEFAULT_OPTIONS,
    undirected: Annotated[bool, DIRECTION] = False,
    edges_query: Annotated[str | None, tyro.conf.arg(metavar="SQL")] = None,
    nodes_query: Annotated[str | None, tyro.conf.arg(metavar="SQL")] = None,
    verify: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
    json: bool = False,
) -> None:
    """Convert edge lists and node tables to a stored graph.

    Tables are CSV, TSV, plain text (also .gz) or Parquet. The edges need two columns,
    the ids of both ends; ids may be numbers or text. The node table has an id column,
    a label column, and columns that become features: numbers, true and false, dates
    (days since 1970), and text, of which every category becomes a column of 0 and 1.
    Numbers and dates are scaled (--scale) and missing ones filled (--missing); the
    constants are stored, and new nodes are scaled alike.

    The folder that is written is a dataset of all other commands. It stores your ids,
    the names of the classes and the encoding of the features.

    Example: unalike import edges.csv --nodes people.csv --label job --out people

    Args:
        edges: Tables of edges: files, folders of part files, quoted patterns,
            duckdb:///FILE#TABLE, or Parquet at a URL such as s3://.
        nodes: Tables of nodes; without any, the nodes are the ids in the edges.
        out: Folder to write; it must not exist.
        edges_query: Query of the edges in a database: `unalike import sqlite:///FILE
            --edges-query "SELECT …"`.
        nodes_query: Query of the nodes in that database.
        undirected: Every edge goes both ways; this is the default.
        verify: Check a stored graph, array by array, instead of importing one.
        json: Print one JSON document instead of a table.
    """
    if verify is not None:
        verify_import(verify, json=json)
        return
    if not edges or out is None:
        missing = "the tables of edges" if not edges else "the folder to write (--out)"
        raise UserError(f"Name {missing}; 'unalike import --help' has an example.")
    tables = input_tables(edges, nodes, edges_query, nodes_query)
    with progress_bar() as bar:
        summary = import_graph(*tables, out=out, options=options, progress=bar)
    if json:
        print_json(summary.to_dict())
        return
    clash = []
    if str(out) in {**DATASETS, **TWINS}:
        clash = [f"{out} is also the name of a dataset; write ./{out} for this graph."]
    for note in [*summary.notes, *clash]:
        OUT.print(f"note: {note}")
    OUT.print(TextTable.from_rows("", ["", ""], [*summary_rows(summary)]))


def input_tables(
    edges: Names, nodes: Names, edges_query: str | None, nodes_query: str | None
) -> tuple[TableInput, TableInput]:
    """The tables of edges and nodes: files, or queries of one database."""
    if edges_query is None and nodes_query is None:
        return edges, nodes
    if edges_query is None or len(edges) != 1 or nodes:
        raise UserError(
            "A database is imported by unalike import sqlite:///FILE --edges-query "
            "SQL [--nodes-query SQL] (or duckdb:///FILE), without other tables."
        )
    query = SqlQuery(edges[0], edges_query)
    return query, () if nodes_query is None else SqlQuery(edges[0], nodes_query)


def verify_import(folder: Path, *, json: bool) -> None:
    """Verify the checksums of a stored graph and print its sizes."""
    metadata = verify_graph(folder).metadata
    arrays = len(metadata["arrays"])
    text = (
        f"{folder} is intact: {arrays} arrays, "
        f"{metadata['num_nodes']:,} nodes, {metadata['num_edges']:,} edges."
    )
    document = {"folder": str(folder), "arrays": arrays, "intact": True}
    print_output(document, text, json=json)


def summary_rows(summary: ImportSummary) -> Iterator[tuple[str, str]]:
    """The rows of the printed summary."""
    kind = "directed" if summary.directed else "undirected"
    layout = "sparse" if summary.sparse else "dense"
    numeric = summary.features - summary.one_hot_columns
    scaled = f", {summary.scaled_columns:,} scaled" if summary.scaled_columns else ""
    yield "nodes", f"{summary.nodes:,}"
    yield "edges", f"{summary.edges:,} {kind}"
    yield "merged repeats", f"{summary.repeats:,}"
    yield "self-loops", f"{summary.loops:,}"
    yield "isolated nodes", f"{summary.isolated:,}"
    yield "dropped edges", f"{summary.dropped:,}"
    yield (
        "features",
        f"{summary.features:,} ({numeric:,} numeric{scaled}, "
        f"{summary.one_hot_columns:,} one-hot), {layout}",
    )
    if summary.label_range is None:
        yield "classes", f"{len(summary.classes):,}"
    else:
        yield "label", "numbers from {:g} to {:g}".format(*summary.label_range)
    for name, count in summary.classes[:MAX_CLASSES]:
        yield f"  {name}", f"{count:,}"
    if len(summary.classes) > MAX_CLASSES:
        yield f"  {len(summary.classes) - MAX_CLASSES:,} more", ""
    yield "unlabelled", f"{summary.unlabelled:,}"
    yield "splits", f"{len(summary.splits):,}"
    for sizes in summary.splits[:1]:
        yield "  first", ", ".join(f"{part} {size:,}" for part, size in sizes.items())
    yield "size on disk", f"{summary.bytes / 1e6:,.1f} MB in {summary.folder}"
    yield "time", f"{summary.seconds:,.1f} s, {summary.edges_per_second:,.0f} edges/s"
