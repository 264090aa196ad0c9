"""Sharding: a stored graph whose columns are divided, written once for many readers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Shaped

from unalike.data.adjacency import Adjacency, index_dtype
from unalike.data.csr import balanced_bounds, slice_columns
from unalike.data.graph import Graph
from unalike.data.sharding import column_nnz, row_blocks
from unalike.data.store import (
    GraphSource,
    GraphWriter,
    StoredGraph,
    add_nodes,
    atomic_graph_writer,
    open_graph,
)
from unalike.data.store import graph_counts as counts_of
from unalike.progress import NO_PROGRESS, Progress

Append = Callable[[Shaped[np.ndarray, " _"]], None]


def shard_graph(
    source: GraphSource, parts: int, folder: Path, *, progress: Progress = NO_PROGRESS
) -> StoredGraph:
    """Divide the columns of a graph, as methods are given it, into shards on disk.

    They are ranges with about equally many entries. Rows are read in order, a bounded
    number at a time, and may come from shards themselves.
    """
    graph = source.prepared(progress=progress)
    rows = graph.adjacency
    counts = column_nnz(rows) if graph.directed else rows.degrees
    bounds = balanced_bounds(counts, parts)
    with atomic_graph_writer(folder) as draft:
        write_shards(draft, rows, bounds, progress)
        draft.add("starts", rows.indptr.numpy())
        add_nodes(draft, graph, source.splits())
        draft.commit({**metadata_of(source, graph), "bounds": bounds})
    return open_graph(folder)


def metadata_of(source: GraphSource, graph: Graph) -> dict[str, Any]:
    """What is known of a graph, whether or not it is divided already."""
    known = source.metadata if isinstance(source, StoredGraph) else counts_of(graph)
    facts = {key: told for key, told in known.items() if key not in PER_FOLDER_KEYS}
    return {**facts, "name": source.name, "metric": source.metric.name}


PER_FOLDER_KEYS = ("format", "unalike", "arrays", "bounds")
"""What a folder says of itself alone."""


@dataclass
class ShardWriter:
    """The files of one shard, to which rows are added."""

    held: range
    starts: Append
    columns: Append
    values: Append | None
    end: int = 0

    def add(self, rows: Adjacency) -> None:
        """Add the entries of some more rows."""
        cut = slice_columns(rows, self.held)
        self.starts(self.end + cut.indptr[1:].numpy())
        self.columns(cut.indices.numpy())
        if self.values is not None and cut.values is not None:
            self.values(cut.values.numpy())
        self.end += int(cut.indptr[-1])


def write_shards(
    draft: GraphWriter, rows: Adjacency, bounds: list[int], progress: Progress
) -> None:
    """Deal the entries of rows out to shards, in one pass over them."""
    progress.stage("dividing", rows.num_rows, "nodes")
    with ExitStack() as files:
        piles = [
            open_shard(
                draft, files, f"shard{place}_", range(begin, end), weighted(rows)
            )
            for place, (begin, end) in enumerate(pairwise(bounds))
        ]
        for ids in row_blocks(rows):
            block = rows.select_rows(ids)
            for one in piles:
                one.add(block)
            progress.advance(len(ids))


def weighted(rows: Adjacency) -> bool:
    """Do entries have values? Those of shards tell by their first rows."""
    return rows.select_rows(rows.indptr[:0]).values is not None


def open_shard(
    draft: GraphWriter, files: ExitStack, prefix: str, held: range, weighted: bool
) -> ShardWriter:
    """Open the files of a shard."""

    def file(name: str, kind: type) -> Append:
        return files.enter_context(draft.append_array(f"{prefix}{name}", kind))

    starts = file("starts", np.int64)
    starts(np.zeros(1, np.int64))
    columns = file("columns", index_dtype(len(held)))
    return ShardWriter(
        held, starts, columns, file("values", np.float32) if weighted else None
    )
