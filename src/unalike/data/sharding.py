"""Column shards of an adjacency, for graphs that one process cannot hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from unalike.data.adjacency import Adjacency, Ids, index_dtype
from unalike.data.csr import balanced_bounds, row_blocks, slice_columns
from unalike.data.store import (
    GraphSource,
    GraphWriter,
    StoredGraph,
    add_nodes,
    atomic_graph_writer,
    graph_counts,
    open_graph,
)
from unalike.errors import UserError
from unalike.progress import NO_PROGRESS, Progress

ENTRIES_AT_ONCE = 2**22
"""Entries in a block of rows that is read from a matrix larger than memory."""


class RowAccessOnly(Adjacency):
    """A matrix that gives rows, and nothing that needs all its columns."""

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise UserError(
            "The columns of this graph are divided into shards, which only the "
            "row-wise methods mlp, link, linkx and link-concat with --directions out "
            "can use."
        )

    to_scipy = subgraph = __matmul__ = _refuse
    diagonal = is_symmetric = property(_refuse)


@dataclass(frozen=True, eq=False)
class ColumnShard(RowAccessOnly):
    """A range of the columns of a matrix, numbered from 0."""

    local: Adjacency = field(kw_only=True)
    """The same entries as an ordinary matrix."""
    first_col: int = field(kw_only=True)
    full_num_cols: int = field(kw_only=True)
    full_degrees: Int[Tensor, " rows"] = field(kw_only=True)

    @classmethod
    def of(cls, local: Adjacency, first_col: int, full: Adjacency) -> ColumnShard:
        """A range of columns of a matrix, from their entries."""
        return cls(
            *local.arrays,
            local=local,
            first_col=first_col,
            full_num_cols=full.num_cols,
            full_degrees=full.degrees,
        )

    @property
    def num_cols_global(self) -> int:
        return self.full_num_cols

    @property
    def local_cols(self) -> range:
        return range(self.first_col, self.first_col + self.num_cols)

    @property
    def global_degrees(self) -> Int[Tensor, " rows"]:
        return self.full_degrees

    def select_rows(self, ids: Ids) -> Adjacency:
        return self.local.select_rows(ids)

    def to(
        self, device: torch.device | str, *, non_blocking: bool = False
    ) -> ColumnShard:
        local = self.local.to(device, non_blocking=non_blocking)
        arrays = local.arrays._asdict()
        degrees = self.full_degrees.to(device)
        return replace(self, **arrays, local=local, full_degrees=degrees)


@dataclass(frozen=True, eq=False)
class ShardedAdjacency(RowAccessOnly):
    """A matrix whose column shards are opened when they are used."""

    bounds: Sequence[int] = field(kw_only=True)
    """The first column of each shard, and the number of columns."""
    open: Callable[[int], Adjacency] = field(kw_only=True)

    @property
    def nnz(self) -> int:
        return int(self.indptr[-1])

    @property
    def num_shards(self) -> int:
        return len(self.bounds) - 1

    def shard(self, index: int) -> ColumnShard:
        """One shard; the others are not opened."""
        return ColumnShard.of(self.open(index), self.bounds[index], self)

    def select_rows(self, ids: Ids) -> Adjacency:
        """Some rows with the columns of all shards."""
        rows = self.open(0).select_rows(ids)
        for index in range(1, self.num_shards):
            rows = rows.hstack(self.open(index).select_rows(ids))
        return rows

    def __getitem__(self, rows: Ids | slice) -> Adjacency:
        return self.select_rows(torch.arange(self.num_rows)[rows])

    def to(
        self, device: torch.device | str, *, non_blocking: bool = False
    ) -> Adjacency:
        """This matrix; an ordinary one with all columns on another device."""
        same = self.indptr.device == torch.device(device)
        return self if same else self[:].to(device, non_blocking=non_blocking)


def take_columns(rows: Adjacency, columns: range) -> ColumnShard:
    """The shard of a matrix that has a range of its columns."""
    local = Adjacency(*slice_columns(rows, columns))
    return ColumnShard.of(local, columns.start, rows)


def column_nnz(rows: Adjacency) -> Int[Tensor, " columns"]:
    """The number of entries in each column, counted block by block."""
    counts = torch.zeros(rows.num_cols, dtype=torch.int64)
    for block in iterate_rows(rows):
        columns = block.indices.long()
        counts.scatter_add_(0, columns, torch.ones_like(columns))
    return counts


def iterate_rows(rows: Adjacency) -> Iterator[Adjacency]:
    """All rows in order, in blocks with a bounded number of entries."""
    for low, high in row_blocks(rows.indptr.numpy(), ENTRIES_AT_ONCE):
        yield rows.select_rows(torch.arange(low, high))


PER_FOLDER_KEYS = ("format", "unalike", "arrays", "bounds", "sha256")
"""Keys of graph.json that describe one folder and not the graph."""


def shard_graph(
    source: GraphSource, parts: int, folder: Path, *, progress: Progress = NO_PROGRESS
) -> StoredGraph:
    """Divide the columns of a prepared graph into shards on disk with about equal nnz.

    Rows are read in order, block by block; the source may be sharded itself.
    """
    graph = source.prepared(progress=progress)
    own = source.metadata if isinstance(source, StoredGraph) else graph_counts(graph)
    metadata = {key: own[key] for key in own if key not in PER_FOLDER_KEYS}
    metadata |= {"name": source.name, "metric": source.metric.name}
    rows = graph.adjacency
    counts = column_nnz(rows) if graph.directed else rows.degrees
    bounds = balanced_bounds(counts, parts)
    with atomic_graph_writer(folder) as writer:
        write_shards(writer, rows, bounds, progress)
        writer.add("starts", rows.indptr.numpy())
        add_nodes(writer, graph, source.splits())
        writer.commit({**metadata, "bounds": bounds})
    return open_graph(folder)


@contextmanager
def shard_writer(
    writer: GraphWriter, prefix: str, columns: range, weighted: bool
) -> Iterator[Callable[[Adjacency], None]]:
    """Give a function that appends the entries of more rows to a shard."""
    nnz = 0

    def append_rows(rows: Adjacency) -> None:
        nonlocal nnz
        arrays = slice_columns(rows, columns)
        append_indptr(nnz + arrays.indptr[1:].numpy())
        append_indices(arrays.indices.numpy())
        if append_values is not None and arrays.values is not None:
            append_values(arrays.values.numpy())
        nnz += len(arrays.indices)

    indices_type = index_dtype(len(columns))
    values = writer.append_array(f"{prefix}values", np.float32)
    with (
        writer.append_array(f"{prefix}starts", np.int64) as append_indptr,
        writer.append_array(f"{prefix}columns", indices_type) as append_indices,
        values if weighted else nullcontext() as append_values,
    ):
        append_indptr(np.zeros(1, np.int64))
        yield append_rows


def write_shards(
    writer: GraphWriter, rows: Adjacency, bounds: list[int], progress: Progress
) -> None:
    """Write the entries of all rows to their shards in one pass."""
    progress.stage("dividing", rows.num_rows, "nodes")
    # A sharded matrix has its values in rows only.
    weighted = rows.select_rows(rows.indptr[:0]).values is not None
    with ExitStack() as files:
        shards = [
            files.enter_context(
                shard_writer(writer, f"shard{index}_", range(*ends), weighted)
            )
            for index, ends in enumerate(pairwise(bounds))
        ]
        for block in iterate_rows(rows):
            for append_rows in shards:
                append_rows(block)
            progress.advance(block.num_rows)
