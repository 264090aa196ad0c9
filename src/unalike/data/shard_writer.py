"""Write a stored graph whose columns are divided into shards."""

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
from unalike.data.sharding import column_nnz, iterate_rows
from unalike.data.store import (
    GraphSource,
    GraphWriter,
    StoredGraph,
    add_nodes,
    atomic_graph_writer,
    graph_counts,
    open_graph,
)
from unalike.progress import NO_PROGRESS, Progress

Append = Callable[[Shaped[np.ndarray, " _"]], None]

PER_FOLDER_KEYS = ("format", "unalike", "arrays", "bounds")
"""Keys of graph.json that describe one folder and not the graph."""


def shard_graph(
    source: GraphSource, parts: int, folder: Path, *, progress: Progress = NO_PROGRESS
) -> StoredGraph:
    """Divide the columns of a prepared graph into shards on disk with about equal nnz.

    Rows are read in order, block by block; the source may be sharded itself.
    """
    graph = source.prepared(progress=progress)
    rows = graph.adjacency
    counts = column_nnz(rows) if graph.directed else rows.degrees
    bounds = balanced_bounds(counts, parts)
    with atomic_graph_writer(folder) as writer:
        write_shards(writer, rows, bounds, progress)
        writer.add("starts", rows.indptr.numpy())
        add_nodes(writer, graph, source.splits())
        writer.commit({**metadata_of(source, graph), "bounds": bounds})
    return open_graph(folder)


def metadata_of(source: GraphSource, graph: Graph) -> dict[str, Any]:
    """The metadata of a graph without the keys that describe one folder."""
    metadata = (
        source.metadata if isinstance(source, StoredGraph) else graph_counts(graph)
    )
    shared = {key: metadata[key] for key in metadata if key not in PER_FOLDER_KEYS}
    return {**shared, "name": source.name, "metric": source.metric.name}


@dataclass
class ShardWriter:
    """The arrays of one shard, to which rows are appended."""

    columns: range
    append_indptr: Append
    append_indices: Append
    append_values: Append | None
    nnz: int = 0

    @classmethod
    def open(
        cls,
        writer: GraphWriter,
        files: ExitStack,
        prefix: str,
        columns: range,
        weighted: bool,
    ) -> ShardWriter:
        """Open the array files of a shard."""

        def append(name: str, dtype: type) -> Append:
            return files.enter_context(writer.append_array(f"{prefix}{name}", dtype))

        append_indptr = append("starts", np.int64)
        append_indptr(np.zeros(1, np.int64))
        append_indices = append("columns", index_dtype(len(columns)))
        append_values = append("values", np.float32) if weighted else None
        return cls(columns, append_indptr, append_indices, append_values)

    def add(self, rows: Adjacency) -> None:
        """Append the entries of more rows."""
        arrays = slice_columns(rows, self.columns)
        self.append_indptr(self.nnz + arrays.indptr[1:].numpy())
        self.append_indices(arrays.indices.numpy())
        if self.append_values is not None and arrays.values is not None:
            self.append_values(arrays.values.numpy())
        self.nnz += int(arrays.indptr[-1])


def write_shards(
    writer: GraphWriter, rows: Adjacency, bounds: list[int], progress: Progress
) -> None:
    """Write the entries of all rows to their shards in one pass."""
    progress.stage("dividing", rows.num_rows, "nodes")
    weighted = is_weighted(rows)
    with ExitStack() as files:
        shards = [
            ShardWriter.open(
                writer, files, f"shard{index}_", range(begin, end), weighted
            )
            for index, (begin, end) in enumerate(pairwise(bounds))
        ]
        for block in iterate_rows(rows):
            for shard in shards:
                shard.add(block)
            progress.advance(block.num_rows)


def is_weighted(rows: Adjacency) -> bool:
    """Whether entries have values; a sharded matrix shows them only in its rows."""
    return rows.select_rows(rows.indptr[:0]).values is not None
