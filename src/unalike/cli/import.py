"""`unalike import`: a user's own tables become a stored graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, make_dataclass
from pathlib import Path
from typing import Annotated, get_type_hints

import tyro
from rich.markup import escape
from rich.table import Table

from unalike.cli.console import OUT, print_json, progress_bar
from unalike.data.store import verify_graph
from unalike.errors import UserError
from unalike.importing.api import import_graph
from unalike.importing.options import Column, Columns, ImportOptions, ImportSummary

SHOWN = 10
"""Classes that are shown one by one."""

Names = tuple[str, ...]

DIRECTION = tyro.conf.create_mutex_group(required=False)
TYRO_ARGS = {
    Column: tyro.conf.arg(metavar="COLUMN"),
    Columns: tyro.conf.arg(metavar="COLUMN..."),
    Columns | None: tyro.conf.arg(metavar="COLUMN..."),
    bool: DIRECTION,
}
"""How the help shows an option of some type."""

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
"""The options with their marks; tyro takes the type of the default."""

GUESS: ImportOptions = FLAGS()


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
    ] = GUESS,
    undirected: Annotated[bool, DIRECTION] = False,
    verify: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
    json: bool = False,
) -> None:
    """Turn your own edge lists and node tables into a stored graph.

    Tables are CSV, TSV, plain text (also .gz) or Parquet. The edges need two columns,
    the ids of both ends; ids may be numbers or text. The node table has an id column,
    a label column, and columns that become features: numbers, true and false, dates
    (days since 1970), and text, of which every category becomes a column of 0 and 1.

    The folder that is written can be named wherever a dataset is asked for. It keeps
    your ids, the names of the classes and how features were made.

    Example: unalike import edges.csv --nodes people.csv --label job --out people

    Args:
        edges: Tables of edges: files, folders of part files, quoted patterns.
        nodes: Tables of nodes; without any, the nodes are the ids in the edges.
        out: Folder to write; it must not exist.
        undirected: Every edge goes both ways, as it does when nothing is said.
        verify: Check a stored graph, array by array, instead of importing one.
        json: Print one JSON document instead of a table.
    """
    if verify is not None:
        verify_import(verify, json=json)
        return
    if not edges or out is None:
        missing = "the tables of edges" if not edges else "the folder to write (--out)"
        raise UserError(f"Name {missing}; 'unalike import --help' has an example.")
    with progress_bar() as bar:
        summary = import_graph(edges, nodes, out=out, options=options, progress=bar)
    if json:
        print_json(summary.to_dict())
        return
    for note in summary.notes:
        OUT.print(f"note: {note}", markup=False)
    table = Table(box=None, show_header=False, pad_edge=False)
    for row in summary_rows(summary):
        table.add_row(*map(escape, row))
    OUT.print(table)


def verify_import(folder: Path, *, json: bool) -> None:
    """Verify a stored graph and say so."""
    about = verify_graph(folder).metadata
    counts = {"folder": str(folder), "arrays": len(about["arrays"]), "intact": True}
    if json:
        print_json(counts)
    else:
        OUT.print(
            f"{folder} is intact: {counts['arrays']} arrays, "
            f"{about['num_nodes']:,} nodes, {about['num_edges']:,} edges.",
            markup=False,
        )


def summary_rows(told: ImportSummary) -> Iterator[tuple[str, str]]:
    """The summary, a line of the table at a time."""
    kind = "directed" if told.directed else "undirected"
    layout = "sparse" if told.sparse else "dense"
    numeric = told.features - told.one_hot_columns
    yield "nodes", f"{told.nodes:,}"
    yield "edges", f"{told.edges:,} {kind}"
    yield "merged repeats", f"{told.repeats:,}"
    yield "self-loops", f"{told.loops:,}"
    yield "isolated nodes", f"{told.isolated:,}"
    yield "dropped edges", f"{told.dropped:,}"
    yield (
        "features",
        f"{told.features:,} ({numeric:,} numeric, {told.one_hot_columns:,} one-hot), "
        f"{layout}",
    )
    yield "classes", f"{len(told.classes):,}"
    for name, count in told.classes[:SHOWN]:
        yield f"  {name}", f"{count:,}"
    if len(told.classes) > SHOWN:
        yield f"  {len(told.classes) - SHOWN:,} more", ""
    yield "unlabelled", f"{told.unlabelled:,}"
    yield "splits", f"{len(told.splits):,}"
    for sizes in told.splits[:1]:
        yield "  first", ", ".join(f"{part} {size:,}" for part, size in sizes.items())
    yield "size on disk", f"{told.bytes / 1e6:,.1f} MB in {told.folder}"
    yield "time", f"{told.seconds:,.1f} s, {told.edges_per_second:,.0f} edges/s"
