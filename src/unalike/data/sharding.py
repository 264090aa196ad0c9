"""Column shards of an adjacency matrix, for graphs that one process cannot hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import torch
from jaxtyping import Float, Int
from torch import Tensor

from unalike.data.adjacency import Adjacency, Ids
from unalike.data.csr import row_blocks, slice_columns
from unalike.errors import UserError

ENTRIES_AT_ONCE = 2**22
"""Entries in a block of rows that is read from a matrix larger than memory."""


class RowAccessOnly(Adjacency):
    """A matrix that gives rows, and nothing that needs all its columns."""

    def to_scipy(self) -> NoReturn:
        self._refuse()

    def subgraph(self, ids: Ids, part: Ids | None = None) -> NoReturn:
        self._refuse()

    @property
    def diagonal(self) -> NoReturn:
        self._refuse()

    def __matmul__(
        self, dense: Float[Tensor, "columns width"]
    ) -> Float[Tensor, "rows width"]:
        self._refuse()

    @property
    def is_symmetric(self) -> NoReturn:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise UserError(
            "The columns of this graph are divided into shards, which only the "
            "row-wise methods mlp, link, linkx and link-concat with --directions out "
            "can use."
        )


@dataclass(frozen=True, eq=False)
class ColumnShard(RowAccessOnly):
    """A range of the columns of a matrix, numbered from 0."""

    local: Adjacency = field(kw_only=True)
    """The same entries as an ordinary matrix."""
    first_col: int = field(kw_only=True)
    full_num_cols: int = field(kw_only=True)
    full_degrees: Int[Tensor, " rows"] = field(kw_only=True)

    @classmethod
    def of(
        cls,
        local: Adjacency,
        *,
        first_col: int,
        full_num_cols: int,
        full_degrees: Int[Tensor, " rows"],
    ) -> ColumnShard:
        """The shard of a full matrix that begins at a column."""
        return cls(
            local.indptr,
            local.indices,
            local.num_cols,
            local.values,
            local=local,
            first_col=first_col,
            full_num_cols=full_num_cols,
            full_degrees=full_degrees,
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

    def to(self, device: torch.device | str) -> ColumnShard:
        return ColumnShard.of(
            self.local.to(device),
            first_col=self.first_col,
            full_num_cols=self.full_num_cols,
            full_degrees=self.full_degrees.to(device),
        )


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
        return ColumnShard.of(
            self.open(index),
            first_col=self.bounds[index],
            full_num_cols=self.num_cols,
            full_degrees=self.degrees,
        )

    def select_rows(self, ids: Ids) -> Adjacency:
        """Some rows with the columns of all shards."""
        rows = self.open(0).select_rows(ids)
        for index in range(1, self.num_shards):
            rows = rows.hstack(self.open(index).select_rows(ids))
        return rows

    def __getitem__(self, rows: Ids | slice) -> Adjacency:
        return self.select_rows(torch.arange(self.num_rows)[rows])

    def to(self, device: torch.device | str) -> Adjacency:
        """This matrix; an ordinary one with all columns on another device."""
        same = self.indptr.device == torch.device(device)
        return self if same else self[:].to(device)


def take_columns(rows: Adjacency, columns: range) -> ColumnShard:
    """The shard of a matrix that has a range of its columns."""
    return ColumnShard.of(
        Adjacency(*slice_columns(rows, columns)),
        first_col=columns.start,
        full_num_cols=rows.num_cols,
        full_degrees=rows.degrees,
    )


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
