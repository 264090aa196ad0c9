"""`Adjacency`: a CSR matrix of edges or sparse features with a differentiable `@`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
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
    index_type,
    select_rows,
    subgraph,
    transpose,
    union,
)
from unalike.data.two_hop import two_hop
from unalike.errors import UserError

Ids = Int[Tensor, " _"]


@dataclass(frozen=True, eq=False)
class Adjacency(CSRMatrix):
    """The neighbours of each node, or any other sparse matrix, in CSR format."""

    _symmetric: bool | None = field(default=None, init=False, repr=False)
    """Whether the matrix equals its transpose; None until it is compared or known."""
    _transpose: Adjacency | None = field(default=None, init=False, repr=False)
    """The transpose of a matrix that is not symmetric, once it is computed."""
    _source: ref[Adjacency] | None = field(default=None, init=False, repr=False)
    """The matrix on the CPU of which this one is a copy on another device."""

    @classmethod
    def from_edges(
        cls,
        source: Ids,
        target: Ids,
        *,
        shape: tuple[int, int],
        values: Float[Tensor, " ids"] | None = None,
    ) -> Adjacency:
        """A matrix from pairs in any order; the values of repeated pairs add up."""
        _check_range(source, shape[0], "source")
        _check_range(target, shape[1], "target")
        ends = (_numpy(source), _numpy(target))
        data = np.ones(len(source), np.int8) if values is None else _numpy(values)
        rows = scipy.sparse.coo_array((data, ends), shape=shape).tocsr()
        return cls.from_scipy(rows, weighted=values is not None)

    @classmethod
    def empty(cls, shape: tuple[int, int]) -> Adjacency:
        """A matrix without entries."""
        none = torch.empty(0, dtype=torch.int64)
        return cls.from_edges(none, none, shape=shape)

    @classmethod
    def from_scipy(
        cls, matrix: scipy.sparse.sparray, *, weighted: bool = True
    ) -> Adjacency:
        """A matrix from SciPy; without values if all are 1 or `weighted` is False."""
        rows = scipy.sparse.csr_array(matrix)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        if weighted and (rows.data == 0).any():
            rows = rows.copy()
            rows.eliminate_zeros()
        weighted = weighted and bool((rows.data != 1).any())
        return cls(
            indptr=torch.from_numpy(rows.indptr.astype(np.int64, copy=False)),
            indices=torch.from_numpy(
                rows.indices.astype(index_dtype(rows.shape[1]), copy=False)
            ),
            num_cols=rows.shape[1],
            values=torch.from_numpy(rows.data.astype(np.float32)) if weighted else None,
        )

    @classmethod
    def from_dense(cls, matrix: Shaped[Tensor, "rows columns"]) -> Adjacency:
        """The entries of a dense matrix that are not zero."""
        return cls.from_scipy(scipy.sparse.csr_array(matrix.numpy()))

    @classmethod
    def from_torch_csr(cls, matrix: Float[Tensor, "rows columns"]) -> Adjacency:
        """A matrix from a `torch.sparse` CSR tensor without repeated entries."""
        columns = matrix.shape[1]
        indices = matrix.col_indices().to(index_type(columns))
        return cls(matrix.crow_indices().long(), indices, columns, matrix.values())

    @property
    def num_rows(self) -> int:
        return len(self.indptr) - 1

    @property
    def nnz(self) -> int:
        return len(self.indices)

    @property
    def shape(self) -> tuple[int, int]:
        return (self.num_rows, self.num_cols)

    def __repr__(self) -> str:
        weights = "" if self.values is None else ", weighted"
        return f"{type(self).__name__}({[*self.shape]}, nnz={self.nnz}{weights})"

    @property
    def nbytes(self) -> int:
        values = 0 if self.values is None else self.values.nbytes
        return self.indptr.nbytes + self.indices.nbytes + values

    @cached_property
    def row_indices(self) -> Int[Tensor, " nnz"]:
        rows = torch.arange(self.num_rows, device=self.indices.device)
        return rows.repeat_interleave(self.degrees)

    @property
    def pattern(self) -> Adjacency:
        """The matrix of ones at the same places, on the same arrays."""
        return Adjacency(self.indptr, self.indices, self.num_cols)

    @property
    def edge_index(self) -> Int[Tensor, "2 nnz"]:
        """Row and column of each entry, as in PyTorch Geometric."""
        return torch.stack([self.row_indices, self.indices.long()])

    @property
    def T(self) -> Adjacency:
        """The transpose; the matrix itself if it is symmetric."""
        if self.is_symmetric or self._transpose is None:
            return self
        return self._transpose

    @property
    def is_symmetric(self) -> bool:
        """Whether the matrix equals its transpose."""
        if self._symmetric is None:
            transposed = Adjacency(*transpose(self))
            symmetric = self._equals(transposed)
            # No reference to itself, which only the garbage collector would free.
            self._set("_transpose", None if symmetric else transposed)
            self._set("_symmetric", symmetric)
        return bool(self._symmetric)

    def _mark_symmetric(self, known: bool | None = True) -> Adjacency:
        """This matrix, which need not be compared with its transpose if `known`."""
        if known:
            self._set("_symmetric", True)
        return self

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _equals(self, other: Adjacency) -> bool:
        if self.shape != other.shape or not torch.equal(self.indices, other.indices):
            return False
        same = torch.equal(self.indptr, other.indptr)
        if self.values is None or other.values is None:
            return same
        return same and torch.equal(self.values, other.values)

    @cached_property
    def row_sums(self) -> Float[Tensor, " rows"]:
        """The sum of each row: the weighted out-degree of a node."""
        ones = torch.ones(self.num_cols, 1, device=self.indices.device)
        return (self @ ones)[:, 0]

    @cached_property
    def column_sums(self) -> Float[Tensor, " columns"]:
        """The sum of each column: the weighted in-degree of a node."""
        return self.T.row_sums

    @cached_property
    def diagonal(self) -> Float[Tensor, " rows"]:
        """The value of each node's self-loop, 0 for a node without one."""
        return diagonal(self)

    @cached_property
    def two_hop(self) -> Adjacency:
        """Nodes two steps away that are not neighbours; mostly the node itself too."""
        if self.indices.is_cuda:
            return self.cpu_copy.two_hop.to(self.indices.device)
        arrays = two_hop(self.to_scipy().astype(bool), index_dtype(self.num_cols))
        indptr, indices = map(torch.from_numpy, arrays)
        # Of a symmetric graph the two-hop graph is symmetric too, and may be too large
        # to be transposed.
        result = Adjacency(indptr, indices, self.num_cols)
        return result._mark_symmetric(self.is_symmetric)

    def __matmul__(
        self, dense: Float[Tensor, "columns width"]
    ) -> Float[Tensor, "rows width"]:
        """The product with a dense matrix, with gradients to the dense matrix."""
        from unalike.nn.sparse import SpMM

        return SpMM.apply(self, dense)

    def select_rows(self, ids: Ids) -> Adjacency:
        """Some rows, in the order of `ids`, with all their columns."""
        return Adjacency(*select_rows(self, ids))

    def __getitem__(self, rows: Ids | slice) -> Adjacency:
        """Some rows; those of a slice share memory with this matrix."""
        if not isinstance(rows, slice):
            return self.select_rows(rows)
        first, last, step = rows.indices(self.num_rows)
        if step != 1:
            ids = range(self.num_rows)[rows]
            return self.select_rows(torch.tensor(ids, device=self.indptr.device).long())
        indptr = self.indptr[first : max(first, last) + 1]
        entries = slice(int(indptr[0]), int(indptr[-1]))
        values = None if self.values is None else self.values[entries]
        return Adjacency(
            indptr - indptr[0], self.indices[entries], self.num_cols, values
        )

    def select_columns(self, columns: range) -> Adjacency:
        """A range of columns, which are numbered from 0."""
        inside = (self.indices >= columns.start) & (self.indices < columns.stop)
        ends = torch.cat([inside.new_zeros(1).long(), inside.cumsum(0)])
        return Adjacency(
            ends[self.indptr.long()],
            self.indices[inside] - columns.start,
            len(columns),
            None if self.values is None else self.values[inside],
        )

    def subgraph(self, ids: Ids, part: Ids | None = None) -> Adjacency:
        """The entries between distinct `ids`, renumbered; within parts if given."""
        return Adjacency(*subgraph(self, ids, part))._mark_symmetric(self._symmetric)

    def union(self, other: Adjacency) -> Adjacency:
        """The entries of either matrix; where both have one, the larger value."""
        return Adjacency.from_scipy(union(self.to_scipy(), other.to_scipy()))

    def to_undirected(self) -> Adjacency:
        """The union with the transpose: every edge in both directions."""
        rows = self.to_scipy()
        return Adjacency.from_scipy(union(rows, rows.T))._mark_symmetric()

    def hstack(self, other: Adjacency) -> Adjacency:
        """This matrix with the columns of `other` to its right."""
        matrix = scipy.sparse.hstack([self.to_scipy(), other.to_scipy()], format="csr")
        return Adjacency.from_scipy(matrix)

    def to(
        self, device: torch.device | str, *, non_blocking: bool = False
    ) -> Adjacency:
        """The same matrix on another device."""
        if self.indices.device == torch.device(device):
            return self
        copy = self._copy(lambda array: array.to(device, non_blocking=non_blocking))
        copy._set("_source", ref(self))
        return copy

    def pin_memory(self) -> Adjacency:
        """The same matrix in pinned memory, for asynchronous copies to a GPU."""
        return self._copy(Tensor.pin_memory)

    def _copy(self, copy: Callable[[Tensor], Tensor]) -> Adjacency:
        values = None if self.values is None else copy(self.values)
        arrays = (copy(self.indptr), copy(self.indices))
        return Adjacency(*arrays, self.num_cols, values)._mark_symmetric(
            self._symmetric
        )

    @property
    def cpu_copy(self) -> Adjacency:
        """The matrix that this one was copied from while it is in use, else a copy.

        What is cached there serves the copies on every device.
        """
        source = None if self._source is None else self._source()
        return self.to("cpu") if source is None else source

    def to_scipy(self) -> scipy.sparse.csr_array:
        """A SciPy matrix over the same memory; int8 ones if there are no values."""
        data = (
            np.ones(self.nnz, np.int8) if self.values is None else _numpy(self.values)
        )
        rows = scipy.sparse.csr_array(
            (data, _numpy(self.indices), _numpy(self.indptr)), shape=self.shape
        )
        rows.has_canonical_format = True
        return rows

    def to_torch_csr(self) -> Float[Tensor, "rows columns"]:
        """A `torch.sparse` CSR tensor with a value for each entry."""
        values = self.values
        if values is None:
            values = torch.ones(self.nnz, device=self.indices.device)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
            return torch.sparse_csr_tensor(
                self.indptr,
                self.indices.long(),
                values,
                self.shape,
                check_invariants=False,
            )

    def to_dense(self) -> Float[Tensor, "rows columns"]:
        return torch.from_numpy(self.to_scipy().astype(np.float32).toarray())


def index_dtype(size: int) -> type[np.int32] | type[np.int64]:
    """The smallest integer type that holds ids below `size`."""
    return np.int32 if index_type(size) == torch.int32 else np.int64


def _check_range(ids: Ids, size: int, end: str) -> None:
    if len(ids) and not (int(ids.min()) >= 0 and int(ids.max()) < size):
        wrong = int(ids[(ids < 0) | (ids >= size)][0])
        raise UserError(f"An edge has the {end} {wrong}; ids run from 0 to {size - 1}.")


def _numpy(tensor: Shaped[Tensor, "*shape"]) -> np.ndarray:
    return tensor.detach().cpu().numpy()


@dataclass(frozen=True, eq=False)
class NewRows(Adjacency):
    """Rows of new nodes: row u holds the training nodes that u points at.

    New nodes are not columns, so the edges that point at them cannot be read off the
    transpose. They are stored as a second matrix, which `T` returns, so that methods
    prepare new rows and square adjacencies by the same code.
    """

    in_edges: Adjacency = field(kw_only=True)
    """Row u holds the training nodes that point at u."""

    @classmethod
    def of(
        cls, out_edges: Adjacency, in_edges: Adjacency, *, directed: bool
    ) -> NewRows:
        """Rows of new nodes; in an undirected graph every edge counts both ways."""
        if not directed and in_edges is not out_edges:
            out_edges = in_edges = out_edges.union(in_edges)
        return cls(*out_edges.arrays, in_edges=in_edges)

    @property
    def T(self) -> Adjacency:
        return self.in_edges

    def to_undirected(self) -> Adjacency:
        same = self.in_edges.indices is self.indices
        return self.in_edges if same else self.union(self.in_edges)
