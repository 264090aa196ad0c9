"""`unalike shard`: divide a graph among processes, on disk."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Annotated

import tyro

from unalike.cli.console import OUT, print_json, progress_bar
from unalike.data.shard_writer import shard_graph
from unalike.datasets import find


def command(
    dataset: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DATASET")],
    *,
    parts: int,
    out: Path,
    data: Path | None = None,
    json: bool = False,
) -> None:
    """Divide the columns of a graph's adjacency, so that each process maps its own.

    The shards hold about equally many edges. A folder of shards can be divided anew
    into another number of them.

    Example: unalike shard pokec --parts 4 --out pokec-4

    Args:
        dataset: A name of `unalike list datasets`, or the folder of a stored graph.
        parts: Shards, one for each process that will train.
        out: Folder for the divided graph.
        data: Folder of the raw files and stored graphs.
        json: Print one JSON document instead of lines.
    """
    with progress_bar() as bar:
        made = shard_graph(find(dataset, data), parts, out, progress=bar)
    shards = [
        {
            "columns": [begin, end],
            "edges": made.metadata["arrays"][f"shard{place}_columns"]["shape"][0],
        }
        for place, (begin, end) in enumerate(pairwise(made.metadata["bounds"]))
    ]
    if json:
        print_json({"folder": str(out), "shards": shards})
        return
    for place, shard in enumerate(shards):
        begin, end = shard["columns"]
        OUT.print(
            f"shard {place}: columns {begin:,} to {end:,}, {shard['edges']:,} edges"
        )
