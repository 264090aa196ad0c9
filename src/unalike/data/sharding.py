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

    def induced(self, ids: Ids, part: Ids | None = None) -> NoReturn:
        self._refuse()

    @property
    def weight_of_loops(self) -> NoReturn:
        self._refuse()

    def __matmul__(
        self, dense: Float[Tensor, "width columns"]
    ) -> Float[Tensor, "rows columns"]:
        self._refuse()

    @property
    def _mirror(self) -> NoReturn:
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
    begin: int = field(kw_only=True)
    whole: int = field(kw_only=True)
    whole_loads: Int[Tensor, " rows"] = field(kw_only=True)

    @classmethod
    def of(
        cls, local: Adjacency, *, begin: int, whole: int, loads: Int[Tensor, " rows"]
    ) -> ColumnShard:
        """The columns of a matrix from `begin` on."""
        return cls(
            local.starts,
            local.columns,
            local.width,
            local.values,
            local=local,
            begin=begin,
            whole=whole,
            whole_loads=loads,
        )

    @property
    def num_columns(self) -> int:
        return self.whole

    @property
    def held(self) -> range:
        return range(self.begin, self.begin + self.width)

    @property
    def loads(self) -> Int[Tensor, " rows"]:
        return self.whole_loads

    def rows(self, ids: Ids) -> Adjacency:
        return self.local.rows(ids)

    def to(self, device: torch.device | str) -> ColumnShard:
        return ColumnShard.of(
            self.local.to(device),
            begin=self.begin,
            whole=self.whole,
            loads=self.whole_loads.to(device),
        )


@dataclass(frozen=True, eq=False)
class ShardedAdjacency(RowAccessOnly):
    """A matrix whose shards lie apart and are opened when they are asked for."""

    bounds: Sequence[int] = field(kw_only=True)
    """Where ranges of columns begin, and where the last one ends."""
    open: Callable[[int], Adjacency] = field(kw_only=True)

    @property
    def num_entries(self) -> int:
        return int(self.starts[-1])

    @property
    def num_shards(self) -> int:
        return len(self.bounds) - 1

    def shard(self, place: int) -> ColumnShard:
        """One of the shards; the others are not looked at."""
        return ColumnShard.of(
            self.open(place),
            begin=self.bounds[place],
            whole=self.width,
            loads=self.degrees,
        )

    def rows(self, ids: Ids) -> Adjacency:
        """Some rows, put together from all shards."""
        parts = [self.open(place).rows(ids) for place in range(self.num_shards)]
        whole = parts[0]
        for part in parts[1:]:
            whole = whole.beside(part)
        return whole

    def __getitem__(self, chosen: Ids | slice) -> Adjacency:
        return self.rows(torch.arange(self.num_rows)[chosen])

    def to(self, device: torch.device | str) -> Adjacency:
        """These rows; put together on another device."""
        here = self.starts.device == torch.device(device)
        return self if here else self[:].to(device)


def take_columns(rows: Adjacency, held: range) -> ColumnShard:
    """The shard of a matrix that holds some of its columns."""
    local = Adjacency(*slice_columns(rows, held))
    return ColumnShard.of(local, begin=held.start, whole=rows.width, loads=rows.degrees)


def column_nnz(rows: Adjacency) -> Int[Tensor, " columns"]:
    """Entries in each column, found a bounded number of entries at a time."""
    counts = torch.zeros(rows.width, dtype=torch.int64)
    for ids in row_blocks(rows):
        columns = rows.rows(ids).columns.long()
        counts.scatter_add_(0, columns, torch.ones_like(columns))
    return counts


def row_blocks(rows: Adjacency) -> list[Ids]:
    """All rows in order, a bounded number of entries at a time."""
    ids = torch.arange(rows.num_rows)
    sizes = (rows.starts[1:] // ENTRIES_AT_ONCE).bincount()
    return list(ids.split(sizes[sizes > 0].tolist())) if len(ids) else []
