"""Edges in every format of PyTorch Geometric, converted to CSR once per tensor.

A sparse matrix is what PyTorch Geometric calls `adj_t`: row i holds the sources of the
edges that point at node i. This is true of `torch.sparse` tensors, of `SparseTensor`
and of `Adjacency`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from threading import RLock
from typing import Any, Literal, NamedTuple, TypeVar

import torch
from torch import Tensor
from torch.utils.weak import TensorWeakRef, WeakTensorKeyDictionary

from unalike.data.adjacency import Adjacency
from unalike.data.csr import INT32_MAX, CSRMatrix, transpose
from unalike.errors import InputError

Layout = Literal["coo", "csr", "csc"]
"""`coo`: an edge_index; `csr`: indices and indptr by target; `csc`: by source."""
SelfLoops = Literal["remaining", "added", "filled"]
"""What becomes of self-loops that are there when each node gets one.

PyTorch Geometric keeps those of an `edge_index`, adds to those of a `torch.sparse`
tensor, and replaces those of a `SparseTensor`.
"""
Value = TypeVar("Value")


class Edges(NamedTuple):
    """Tensors of the edges, in a form that custom operators take as arguments."""

    layout: Layout
    indices: Tensor
    """The edge_index, or the indices of a compressed layout."""
    indptr: Tensor | None
    weight: Tensor | None
    self_loops: SelfLoops = "remaining"


def as_edges(edge_index: Any, edge_weight: Tensor | None = None) -> Edges:
    """The tensors of edges in any format; sparse matrices have their own weights."""
    if isinstance(edge_index, Tensor) and edge_index.layout == torch.strided:
        if hasattr(edge_index, "as_tensor"):  # torch_geometric.EdgeIndex
            edge_index = edge_index.as_tensor()
        _check_edge_index(edge_index)
        weight = _weight_per_edge(edge_weight, edge_index.shape[1])
        return Edges("coo", edge_index, None, weight)
    if edge_weight is not None:
        raise InputError(
            "edge_weight is given with a sparse matrix; the matrix holds the weights."
        )
    if isinstance(edge_index, Adjacency):
        return Edges("csr", edge_index.indices, edge_index.indptr, edge_index.values)
    if isinstance(edge_index, Tensor):
        return SPARSE_TENSORS.get(edge_index, (), lambda: _sparse_edges(edge_index))
    if hasattr(edge_index, "csr"):  # torch_sparse.SparseTensor
        indptr, indices, values = edge_index.csr()
        return Edges("csr", indices, indptr, values, "filled")
    raise InputError(
        f"Edges are given as {type(edge_index).__name__}; give an edge_index tensor "
        "[2, edges], a torch.sparse tensor, an EdgeIndex, a SparseTensor or an "
        "Adjacency."
    )


def _check_edge_index(edge_index: Tensor) -> None:
    if edge_index.dim() != 2 or edge_index.shape[0] != 2:
        shape = list(edge_index.shape)
        raise InputError(f"edge_index has the shape {shape}; it must be [2, edges].")
    if edge_index.is_floating_point() or edge_index.dtype == torch.bool:
        raise InputError(f"edge_index is {edge_index.dtype}; it must hold integers.")


def _weight_per_edge(weight: Tensor | None, num_edges: int) -> Tensor | None:
    """The weights [edges]; those of a column [edges, 1] are taken too."""
    if weight is not None and weight.shape == (num_edges, 1):
        return weight[:, 0]
    if weight is not None and weight.shape != (num_edges,):
        raise InputError(
            f"edge_weight has the shape {list(weight.shape)}; it must be "
            f"[{num_edges}], a weight for each edge."
        )
    return weight


def _sparse_edges(matrix: Tensor) -> Edges:
    """The arrays of a torch.sparse tensor."""
    if matrix.requires_grad:
        raise InputError(
            "The torch.sparse tensor requires a gradient; give an edge_index and an "
            "edge_weight that requires it."
        )
    # A detached tensor is another object: the cache must not hold its own key.
    matrix = matrix.detach()
    if matrix.layout == torch.sparse_csr:
        arrays = (matrix.col_indices(), matrix.crow_indices())
        return Edges("csr", *arrays, matrix.values(), "added")
    if matrix.layout == torch.sparse_csc:
        arrays = (matrix.row_indices(), matrix.ccol_indices())
        return Edges("csc", *arrays, matrix.values(), "added")
    if matrix.layout == torch.sparse_coo:
        matrix = matrix.coalesce()
        edge_index = matrix.indices().flip(0)
        return Edges("coo", edge_index, None, matrix.values(), "added")
    raise InputError(f"Edges cannot be given in the layout {matrix.layout}.")


def edge_ends(edges: Edges) -> tuple[Tensor, Tensor]:
    """The source and the target of each edge."""
    indices, indptr = edges.indices, edges.indptr
    if indptr is None:
        return indices[0], indices[1]
    rows = torch.arange(indptr.shape[0] - 1, device=indices.device)
    rows = rows.repeat_interleave(indptr.diff(), output_size=indices.shape[0])
    indices = indices.long()
    return (indices, rows) if edges.layout == "csr" else (rows, indices)


class TensorCache:
    """Values that are computed from a tensor, dropped when it changes or is freed.

    A value must not hold the tensor, which would then never be freed.
    """

    def __init__(self) -> None:
        self.entries: WeakTensorKeyDictionary = WeakTensorKeyDictionary()
        self.lock = RLock()

    def get(self, tensor: Tensor, key: Any, compute: Callable[[], Value]) -> Value:
        """The value for a tensor and a key, computed on first use."""
        if tensor.is_inference() and tensor.layout != torch.strided:
            return compute()
        with self.lock:
            version, values = self.entries.get(tensor, (None, {}))
            if not _is_version(version, tensor):
                values = {}
                self.entries[tensor] = (_version(tensor), values)
            if key not in values:
                values[key] = compute()
            return values[key]


def _version(tensor: Tensor) -> int | Tensor:
    """What shows that a tensor has changed: torch counts no versions in inference."""
    return tensor.clone() if tensor.is_inference() else tensor._version


def _is_version(version: int | Tensor | None, tensor: Tensor) -> bool:
    if version is None:
        return False
    if isinstance(version, Tensor):
        return torch.equal(version, tensor)
    return version == tensor._version


SPARSE_TENSORS = TensorCache()
GRAPHS = TensorCache()


@dataclass(frozen=True, eq=False)
class EdgeRows(CSRMatrix):
    """Edges by target or by source; an edge that is given twice is two entries."""

    positions: Tensor | None = None
    """For each entry its position in the matrix of which this is the transpose."""
    transposed: EdgeRows | None = None
    """The matrix of which this is the transpose."""

    @property
    def T(self) -> EdgeRows:
        """The transpose, computed at each call if it is not known."""
        if self.transposed is not None:
            return self.transposed
        rows = torch.arange(len(self.degrees), device=self.indices.device)
        rows = rows.repeat_interleave(self.degrees, output_size=len(self.indices))
        return group_edges(self.indices, rows, (self.num_cols, len(self.degrees)))

    def with_values(self, values: Tensor) -> EdgeRows:
        """The same entries with values, which are given in the order of the entries."""
        weighted = replace(self, values=values, transposed=None)
        if self.indices.is_cuda:  # the order in which CUDA kernels take the rows
            weighted.__dict__["rows_by_length"] = self.rows_by_length
        return weighted


def group_edges(row: Tensor, column: Tensor, shape: tuple[int, int]) -> EdgeRows:
    """Edges grouped by their row; those of a row stay in the order in which they are.

    The matrix with a row for each edge and a one in the column `row` is transposed.
    """
    one_per_edge = torch.arange(len(row) + 1, device=row.device)
    dtype = torch.int32 if max(shape) <= INT32_MAX else torch.int64
    by_edge = Adjacency(one_per_edge, row.to(dtype), shape[0])
    indptr, positions, _, _ = transpose(by_edge)
    return EdgeRows(indptr, column[positions].to(dtype), shape[1], positions=positions)


class MessageGraph:
    """The incoming edges of each target, the outgoing ones of each source, weights."""

    def __init__(
        self, incoming: EdgeRows, edge_ids: Tensor | None, outgoing: EdgeRows | None
    ) -> None:
        self.incoming, self.edge_ids = incoming, edge_ids
        self.weights = TensorCache()
        self.cache: dict[Any, Any] = {}
        if outgoing is not None:
            self.outgoing = replace(outgoing, transposed=incoming)

    @cached_property
    def outgoing(self) -> EdgeRows:
        """The targets of each source."""
        return replace(self.incoming.T, transposed=self.incoming)

    @cached_property
    def targets(self) -> Tensor:
        """The target of each incoming entry."""
        degrees = self.incoming.degrees
        rows = torch.arange(len(degrees), device=degrees.device)
        return rows.repeat_interleave(degrees, output_size=len(self.incoming.indices))

    def cached(
        self, weight: Tensor | None, key: Any, compute: Callable[[], Value]
    ) -> Value:
        """What is computed from the edges and their weights, on first use."""
        if weight is not None:
            return self.weights.get(weight, key, compute)
        if key not in self.cache:
            self.cache[key] = compute()
        value: Value = self.cache[key]
        return value

    def rows(self, weight: Tensor | None, *, transposed: bool) -> EdgeRows:
        """The matrix of the edges with their weights, or its transpose."""
        if weight is None:
            return self.outgoing if transposed else self.incoming
        return self.weights.get(
            weight, transposed, lambda: self._weighted(weight, transposed=transposed)
        )

    def _weighted(self, weight: Tensor, *, transposed: bool) -> EdgeRows:
        # A detached tensor is another object: the cache must not hold its own key.
        values = weight.detach()
        if self.edge_ids is not None:
            values = values[self.edge_ids]
        if not transposed:
            return self.incoming.with_values(values)
        return self.outgoing.with_values(values[self.outgoing.positions])

    def in_edge_order(self, values: Tensor) -> Tensor:
        """Values of incoming entries in the order in which the edges are given."""
        if self.edge_ids is None:
            return values
        ordered = torch.empty_like(values)
        ordered[self.edge_ids.long()] = values
        return ordered


def message_graph(
    layout: Layout,
    index: Tensor,
    indptr: Tensor | None,
    num_sources: int,
    num_targets: int,
) -> MessageGraph:
    """The graph of some tensors, converted on first use."""
    shape = (num_sources, num_targets)
    if indptr is None:
        return GRAPHS.get(index, shape, lambda: _from_coo(index, shape))

    def convert() -> tuple[TensorWeakRef, int, MessageGraph]:
        graph = FROM_COMPRESSED[layout](indptr, index, shape)
        return TensorWeakRef(indptr), indptr._version, graph

    if indptr.is_inference():
        return FROM_COMPRESSED[layout](indptr, index, shape)
    owner, version, graph = GRAPHS.get(index, (layout, shape), convert)
    if owner() is indptr and version == indptr._version:
        return graph
    return convert()[2]


def _from_coo(edge_index: Tensor, shape: tuple[int, int]) -> MessageGraph:
    source, target = edge_index
    for ids, size, end in zip(edge_index, shape, ("source", "target"), strict=True):
        _check_range(ids, size, end)
    incoming = group_edges(target, source, shape[::-1])
    edge_ids = incoming.positions
    return MessageGraph(replace(incoming, positions=None), edge_ids, None)


def _from_csr(indptr: Tensor, indices: Tensor, shape: tuple[int, int]) -> MessageGraph:
    return MessageGraph(_compressed(indptr, indices, shape[::-1]), None, None)


def _from_csc(indptr: Tensor, indices: Tensor, shape: tuple[int, int]) -> MessageGraph:
    outgoing = _compressed(indptr, indices, shape)
    incoming = outgoing.T
    edge_ids = incoming.positions
    assert edge_ids is not None
    positions = torch.empty_like(edge_ids)
    entries = torch.arange(len(edge_ids), device=edge_ids.device, dtype=edge_ids.dtype)
    positions[edge_ids.long()] = entries
    return MessageGraph(
        replace(incoming, positions=None),
        edge_ids,
        replace(outgoing, positions=positions),
    )


FROM_COMPRESSED = {"csr": _from_csr, "csc": _from_csc}


def _compressed(indptr: Tensor, indices: Tensor, shape: tuple[int, int]) -> EdgeRows:
    num_rows, num_cols = shape
    if len(indptr) - 1 != num_rows:
        raise InputError(
            f"The sparse matrix has {len(indptr) - 1} rows, but there are {num_rows} "
            "nodes."
        )
    _check_indptr(indptr, indices)
    _check_range(indices, num_cols, "column")
    dtype = torch.int32 if max(shape) <= INT32_MAX else torch.int64
    # Other objects than those that are the keys of the cache.
    return EdgeRows(indptr.detach().long(), indices.detach().to(dtype), num_cols)


def _check_indptr(indptr: Tensor, indices: Tensor) -> None:
    """Refuse pointers that torch has not checked and that native code would follow."""
    if indptr[0] != 0 or indptr[-1] != len(indices) or (indptr.diff() < 0).any():
        raise InputError(
            "The pointers of the sparse matrix do not rise from 0 to its number of "
            "entries."
        )


def _check_range(ids: Tensor, size: int, end: str) -> None:
    if not len(ids):
        return
    low, high = (int(bound) for bound in torch.aminmax(ids))
    if low < 0 or high >= size:
        wrong = low if low < 0 else high
        raise InputError(
            f"An edge has the {end} {wrong}; there are {size} nodes, with ids from 0 "
            f"to {size - 1}."
        )
