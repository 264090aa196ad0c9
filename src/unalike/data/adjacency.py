"""`Adjacency`: the CSR matrix of edges or sparse features, with cached transpose and differentiable `@`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from weakref import ref

import numpy as np
import scipy.sparse
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from unalike.data.csr import (
    CSRMatrix,
    diagonal,
    select_rows,
    subgraph,
    transpose,
    two_hop,
)
from unalike.errors import UserError

Ids = Int[Tensor, " _"]

_INT32_MAX = 2**31 - 1


class Adjacency(CSRMatrix):
    """The neighbours of each node, or any other sparse matrix, by rows."""

    @classmethod
    def from_edges(
        cls,
        source: Ids,
        target: Ids,
        *,
        shape: tuple[int, int],
        values: Float[Tensor, " ids"] | None = None,
    ) -> Adjacency:
        """Rows from pairs in any order; the values of repeated pairs add up."""
        for ids, size, end in (
            (source, shape[0], "source"),
            (target, shape[1], "target"),
        ):
            _check_range(ids, size, end)
        ends = (_numpy(source), _numpy(target))
        entries = np.ones(len(source), np.int8) if values is None else _numpy(values)
        rows = scipy.sparse.coo_array((entries, ends), shape=shape).tocsr()
        return cls.from_scipy(rows, weighted=values is not None)

    @classmethod
    def from_scipy(
        cls, matrix: scipy.sparse.sparray, *, weighted: bool = True
    ) -> Adjacency:
        """Rows of a scipy matrix; its values are kept unless all are 1 or unwanted."""
        rows = scipy.sparse.csr_array(matrix)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        if weighted and (rows.data == 0).any():
            rows = rows.copy()
            rows.eliminate_zeros()
        keep = weighted and bool((rows.data != 1).any())
        return cls(
            indptr=torch.from_numpy(rows.indptr.astype(np.int64, copy=False)),
            indices=torch.from_numpy(
                rows.indices.astype(index_dtype(rows.shape[1]), copy=False)
            ),
            num_cols=rows.shape[1],
            values=torch.from_numpy(rows.data.astype(np.float32)) if keep else None,
        )

    @property
    def num_rows(self) -> int:
        return len(self.indptr) - 1

    @property
    def nnz(self) -> int:
        return len(self.indices)

    @property
    def shape(self) -> tuple[int, int]:
        return (self.num_rows, self.num_cols)

    @cached_property
    def row_indices(self) -> Int[Tensor, " edges"]:
        """The row each entry stands in."""
        rows = torch.arange(self.num_rows, device=self.indices.device)
        return rows.repeat_interleave(self.degrees)

    @property
    def T(self) -> Adjacency:
        """The same entries with rows and columns exchanged; itself if symmetric."""
        return self if self._transpose is None else self._transpose

    @cached_property
    def _transpose(self) -> Adjacency | None:
        # Rows that held themselves would live until the collector came round.
        mirror = Adjacency(*transpose(self))
        return None if self._equals(mirror) else mirror

    @cached_property
    def column_sums(self) -> Float[Tensor, " columns"]:
        """The sum of each column: the weight of the edges that enter a node."""
        ones = torch.ones(self.num_rows, 1, device=self.indices.device)
        return (self.T @ ones)[:, 0]

    @cached_property
    def diagonal(self) -> Float[Tensor, " rows"]:
        """The value of each node's edge to itself, 0 where there is none."""
        return diagonal(self)

    @cached_property
    def two_hop(self) -> Adjacency:
        """Nodes two steps away that are not one step away; mostly a node itself too."""
        if self.indices.is_cuda:
            return self.cpu_copy.two_hop.to(self.indices.device)
        found = two_hop(self.to_scipy().astype(bool), index_dtype(self.num_cols))
        starts, columns = map(torch.from_numpy, found)
        beyond = Adjacency(starts, columns, self.num_cols)
        if self.is_symmetric:
            # Then so are its two hops, which may be too many to be transposed.
            beyond._known_symmetric()
        return beyond

    @property
    def is_symmetric(self) -> bool:
        """Is every entry there both ways, with the same value?"""
        return self._transpose is None

    def _known_symmetric(self, known: bool = True) -> Adjacency:
        """These rows, which need not be compared with their mirror image if known."""
        if known:
            vars(self)["_transpose"] = None
        return self

    @property
    def _is_known_symmetric(self) -> bool:
        return "_transpose" in vars(self) and self.is_symmetric

    def _equals(self, other: Adjacency) -> bool:
        if self.shape != other.shape or not torch.equal(self.indices, other.indices):
            return False
        same = torch.equal(self.indptr, other.indptr)
        if self.values is None or other.values is None:
            return same
        return same and torch.equal(self.values, other.values)

    def __matmul__(
        self, dense: Float[Tensor, "width columns"]
    ) -> Float[Tensor, "rows columns"]:
        """The product with a dense matrix, with gradients to the dense side."""
        from unalike.nn.sparse import SpMM

        return SpMM.apply(self, dense)

    def select_rows(self, ids: Ids) -> Adjacency:
        """Some rows, in the order of `ids`, with all their columns."""
        return Adjacency(*select_rows(self, ids))

    def __getitem__(self, chosen: Ids | slice) -> Adjacency:
        """Some rows; those of a slice share the memory of these."""
        if not isinstance(chosen, slice):
            return self.select_rows(chosen)
        first, last, step = chosen.indices(self.num_rows)
        if step != 1:
            wanted = range(self.num_rows)[chosen]
            return self.select_rows(
                torch.tensor(wanted, device=self.indptr.device).long()
            )
        starts = self.indptr[first : max(first, last) + 1]
        entries = slice(int(starts[0]), int(starts[-1]))
        values = None if self.values is None else self.values[entries]
        return Adjacency(
            starts - starts[0], self.indices[entries], self.num_cols, values
        )

    def subgraph(self, ids: Ids, part: Ids | None = None) -> Adjacency:
        """The entries between distinct `ids`, or of like parts of them, renumbered."""
        cut = subgraph(self, ids, part)
        return Adjacency(*cut)._known_symmetric(self._is_known_symmetric)

    def to_undirected(self) -> Adjacency:
        """Every entry and its mirror image; where both have a weight, the larger."""
        rows = self.to_scipy()
        if self.values is not None:
            # The maximum takes what is absent for 0, which is above negative weights.
            there = abs(rows.sign())
            rows = rows + rows.T.multiply(there.T - there.multiply(there.T))
        both = rows.maximum(rows.T)
        weighted = self.values is not None
        return Adjacency.from_scipy(both, weighted=weighted)._known_symmetric()

    def hstack(self, other: Adjacency) -> Adjacency:
        """Both matrices as one, the columns of `other` after these."""
        both = scipy.sparse.hstack([self.to_scipy(), other.to_scipy()], format="csr")
        weighted = self.values is not None or other.values is not None
        return Adjacency.from_scipy(both, weighted=weighted)

    def to(self, device: torch.device | str) -> Adjacency:
        """The same rows on another device."""
        if self.indices.device == torch.device(device):
            return self
        moved = self._copy(lambda part: part.to(device))
        vars(moved)["origin"] = ref(self)
        return moved

    def pin_memory(self) -> Adjacency:
        """The same rows where a card can fetch them by itself."""
        return self._copy(Tensor.pin_memory)

    def _copy(self, copied: Callable[[Tensor], Tensor]) -> Adjacency:
        values = None if self.values is None else copied(self.values)
        copy = Adjacency(
            copied(self.indptr), copied(self.indices), self.num_cols, values
        )
        return copy._known_symmetric(self._is_known_symmetric)

    @property
    def cpu_copy(self) -> Adjacency:
        """The same rows where they came from, as long as those are in use.

        What is worked out there serves every device, and every copy on it.
        """
        origin: Adjacency | None = vars(self).get("origin", lambda: None)()
        return self.to("cpu") if origin is None else origin

    def to_scipy(self) -> scipy.sparse.csr_array:
        """A scipy matrix over the same memory; int8 ones where there are no values."""
        values = (
            np.ones(self.nnz, np.int8) if self.values is None else _numpy(self.values)
        )
        rows = scipy.sparse.csr_array(
            (values, _numpy(self.indices), _numpy(self.indptr)), shape=self.shape
        )
        rows.has_canonical_format = True
        return rows

    def to_dense(self) -> Float[Tensor, "rows width"]:
        """The whole matrix, zeros included."""
        return torch.from_numpy(self.to_scipy().astype(np.float32).toarray())


def index_dtype(size: int) -> type[np.int32] | type[np.int64]:
    """The smallest integer type that holds ids below `size`."""
    return np.int32 if size <= _INT32_MAX else np.int64


def _check_range(ids: Ids, size: int, end: str) -> None:
    if len(ids) and not (int(ids.min()) >= 0 and int(ids.max()) < size):
        wrong = int(ids[(ids < 0) | (ids >= size)][0])
        raise UserError(f"An edge has the {end} {wrong}; ids run from 0 to {size - 1}.")


def _numpy(tensor: Shaped[Tensor, "*shape"]) -> np.ndarray:
    return tensor.detach().cpu().numpy()
