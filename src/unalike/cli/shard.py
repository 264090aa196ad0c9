"""`unalike shard`: store a graph in column shards for several processes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Annotated

import tyro

from unalike.cli.console import print_output, progress_bar
from unalike.data.sharding import shard_graph
from unalike.datasets import find


def command(
    dataset: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DATASET")],
    *,
    parts: int,
    out: Path,
    data: Path | None = None,
    json: bool = False,
) -> None:
    """Store the adjacency of a graph in column shards, one for each process.

    The shards have about equally many edges. A sharded graph can be stored again with
    another number of shards.

    Example: unalike shard pokec --parts 4 --out pokec-4

    Args:
        dataset: A name of `unalike list datasets`, or the folder of a stored graph.
        parts: Shards, one for each process that will train.
        out: Folder of the sharded graph.
        data: Folder of the raw files and stored graphs.
        json: Print one JSON document instead of lines.
    """
    with progress_bar() as bar:
        stored = shard_graph(find(dataset, data), parts, out, progress=bar)
    shards = [
        {
            "columns": [begin, end],
            "edges": stored.metadata["arrays"][f"shard{index}_columns"]["shape"][0],
        }
        for index, (begin, end) in enumerate(pairwise(stored.metadata["bounds"]))
    ]
    lines = (
        "shard {}: columns {:,} to {:,}, {:,} edges".format(
            index, *shard["columns"], shard["edges"]
        )
        for index, shard in enumerate(shards)
    )
    document = {"folder": str(out), "shards": shards}
    print_output(document, "\n".join(lines), json=json)
