"""Shard: a range of the columns of a sparse matrix; others hold the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import torch
from jaxtyping import Float, Int
from torch import Tensor

from unalike.data.adjacency import Adjacency, Ids
from unalike.data.csr import slice_columns
from unalike.errors import UserError

ENTRIES_AT_ONCE = 2**22
"""Entries that are looked at together where there may be more than memory holds."""


class RowAccessOnly(Adjacency):
    """A sparse matrix that can give rows, and nothing that needs all its columns."""

    def to_scipy(self) -> NoReturn:
        self._refuse()

    def subgraph(self, ids: Ids, part: Ids | None = None) -> NoReturn:
        self._refuse()

    @property
    def diagonal(self) -> NoReturn:
        self._refuse()

    def __matmul__(
        self, dense: Float[Tensor, "width columns"]
    ) -> Float[Tensor, "rows columns"]:
        self._refuse()

    @property
    def _transpose(self) -> NoReturn:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise UserError(
            "The columns of this graph are divided: nothing can look along its edges "
            "but the rows of mlp, link, linkx and link-concat with --directions out."
        )


@dataclass(frozen=True, eq=False)
class ColumnShard(RowAccessOnly):
    """Some columns of a matrix; they count from the first that is held."""

    local: Adjacency = field(kw_only=True)
    """The same entries, as they are read."""
    first_col: int = field(kw_only=True)
    full_num_cols: int = field(kw_only=True)
    full_degrees: Int[Tensor, " rows"] = field(kw_only=True)

    @classmethod
    def of(
        cls, local: Adjacency, *, begin: int, whole: int, loads: Int[Tensor, " rows"]
    ) -> ColumnShard:
        """The columns of a matrix from `begin` on."""
        return cls(
            local.indptr,
            local.indices,
            local.num_cols,
            local.values,
            local=local,
            first_col=begin,
            full_num_cols=whole,
            full_degrees=loads,
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
            begin=self.first_col,
            whole=self.num_cols_global,
            loads=self.global_degrees.to(device),
        )


@dataclass(frozen=True, eq=False)
class ShardedAdjacency(RowAccessOnly):
    """A matrix whose shards lie apart and are opened when they are asked for."""

    bounds: Sequence[int] = field(kw_only=True)
    """Where ranges of columns begin, and where the last one ends."""
    open: Callable[[int], Adjacency] = field(kw_only=True)

    @property
    def nnz(self) -> int:
        return int(self.indptr[-1])

    @property
    def num_shards(self) -> int:
        return len(self.bounds) - 1

    def shard(self, place: int) -> ColumnShard:
        """One of the shards; the others are not looked at."""
        return ColumnShard.of(
            self.open(place),
            begin=self.bounds[place],
            whole=self.num_cols,
            loads=self.degrees,
        )

    def select_rows(self, ids: Ids) -> Adjacency:
        """Some rows, put together from all shards."""
        parts = [self.open(place).select_rows(ids) for place in range(self.num_shards)]
        whole = parts[0]
        for part in parts[1:]:
            whole = whole.hstack(part)
        return whole

    def __getitem__(self, chosen: Ids | slice) -> Adjacency:
        return self.select_rows(torch.arange(self.num_rows)[chosen])

    def to(self, device: torch.device | str) -> Adjacency:
        """These rows; put together on another device."""
        here = self.indptr.device == torch.device(device)
        return self if here else self[:].to(device)


def take_columns(rows: Adjacency, held: range) -> ColumnShard:
    """The shard of a matrix that holds some of its columns."""
    local = Adjacency(*slice_columns(rows, held))
    return ColumnShard.of(
        local, begin=held.start, whole=rows.num_cols, loads=rows.degrees
    )


def column_nnz(rows: Adjacency) -> Int[Tensor, " columns"]:
    """Entries in each column, found a bounded number of entries at a time."""
    counts = torch.zeros(rows.num_cols, dtype=torch.int64)
    for ids in row_blocks(rows):
        columns = rows.select_rows(ids).indices.long()
        counts.scatter_add_(0, columns, torch.ones_like(columns))
    return counts


def row_blocks(rows: Adjacency) -> list[Ids]:
    """All rows in order, a bounded number of entries at a time."""
    ids = torch.arange(rows.num_rows)
    sizes = (rows.indptr[1:] // ENTRIES_AT_ONCE).bincount()
    return list(ids.split(sizes[sizes > 0].tolist())) if len(ids) else []
