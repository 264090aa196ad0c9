"""`Graph`: adjacency, features and labels; label encoding, subgraphs, conversions."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import scipy.sparse
import torch
from jaxtyping import Float, Int
from torch import Tensor

from unalike.data.adjacency import Adjacency, Ids
from unalike.display import MAX_CLASSES_SHOWN, Displayable, TextTable
from unalike.errors import UserError

if TYPE_CHECKING:
    import networkx
    from torch_geometric.data import Data


Features: TypeAlias = Float[Tensor, "nodes features"] | Adjacency
"""Both have `x @ weight`, `x[ids]`, `x.shape`, `x.to(device)`, `x.to_dense()`."""


def as_features(features: Features | np.ndarray | scipy.sparse.sparray) -> Features:
    """A float tensor or a sparse matrix; integers become floats."""
    if isinstance(features, Adjacency):
        return features
    if scipy.sparse.issparse(features):
        return Adjacency.from_scipy(features)
    tensor = torch.as_tensor(features)
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    return tensor if tensor.is_floating_point() else tensor.float()


def select_features(
    features: Features, nodes: Ids | slice
) -> Float[Tensor, "selected features"] | Adjacency:
    """The features of some nodes; those of a slice share memory."""
    if isinstance(features, Adjacency) or isinstance(nodes, slice):
        return features[nodes]
    # Twice as fast as indexing on rows that are spread over a memory-mapped file.
    return features.index_select(0, nodes)


def encode_labels(
    labels: Sequence[Hashable],
) -> tuple[Int[Tensor, " nodes"], list[Hashable]]:
    """Integer labels in sorted order of the classes, -1 for None; and the classes."""
    known = {label for label in labels if label is not None}
    classes = sorted(known, key=lambda label: (isinstance(label, str), label))
    codes: dict[Hashable, int] = {label: code for code, label in enumerate(classes)}
    encoded = [-1 if label is None else codes[label] for label in labels]
    return torch.tensor(encoded, dtype=torch.int64), classes


def quantile_labels(values: np.ndarray, num_classes: int) -> Int[Tensor, " nodes"]:
    """Classes of about equal size: the number of inner quantiles <= each value.

    The inner quantiles are those at 1/K, 2/K, ..., by linear interpolation. A value
    equal to one belongs to the class above it, so many ties make classes uneven. NaN
    has no class (-1).
    """
    values = np.asarray(values, np.float64).ravel()
    labels = np.full(len(values), -1)
    known = ~np.isnan(values)
    if known.any():
        fractions = np.arange(1, num_classes) / num_classes
        thresholds = np.quantile(values[known], fractions)
        labels[known] = np.searchsorted(thresholds, values[known], side="right")
    return torch.from_numpy(labels)


MAX_COUNTED_NNZ = 50_000_000
"""With more entries, self-loops are not counted for the summary alone."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Graph(Displayable):
    """Nodes with features and labels, and the edges between them.

    Row u of the adjacency has the targets of the edges that leave u. An undirected
    graph has every edge in both directions. A batch of rows is a Graph with a
    rectangular adjacency.
    """

    adjacency: Adjacency
    features: Features
    labels: Int[Tensor, " nodes"]
    """The class of each node; -1 where it is unknown."""
    num_classes: int
    directed: bool
    node_ids: Ids | None = None
    """For a subgraph or batch: the ids of its nodes in the full graph."""

    def __post_init__(self) -> None:
        counts = {
            "adjacency rows": self.adjacency.num_rows,
            "feature rows": self.features.shape[0],
            "labels": len(self.labels),
        }
        if len(set(counts.values())) > 1:
            sizes = ", ".join(f"{count} {name}" for name, count in counts.items())
            raise UserError(f"The parts of a graph differ in their nodes: {sizes}.")

    @classmethod
    def build(
        cls,
        adjacency: Adjacency,
        *,
        features: Features | None = None,
        labels: Int[Tensor, " nodes"] | None = None,
        num_classes: int | None = None,
        directed: bool = False,
    ) -> Graph:
        """A graph from its adjacency; no features or labels unless given."""
        nodes = adjacency.num_rows
        if labels is None:
            labels = torch.full((nodes,), -1)
        labels = labels.long()
        needed = int(labels.max()) + 1 if nodes else 0
        if num_classes is None:
            num_classes = needed
        if needed > num_classes:
            raise UserError(
                f"The label {needed - 1} is not one of {num_classes} classes; "
                "they begin at 0."
            )
        return cls(
            adjacency=adjacency,
            features=torch.zeros(nodes, 0) if features is None else features,
            labels=labels,
            num_classes=num_classes,
            directed=directed,
        )

    @classmethod
    def from_edges(
        cls,
        source: Ids,
        target: Ids,
        *,
        num_nodes: int,
        features: Features | None = None,
        labels: Int[Tensor, " nodes"] | None = None,
        num_classes: int | None = None,
        directed: bool = False,
    ) -> Graph:
        """A graph from pairs of node ids; repeated pairs merge."""
        rows = Adjacency.from_edges(source, target, shape=(num_nodes, num_nodes))
        return cls.build(
            rows if directed else rows.to_undirected(),
            features=features,
            labels=labels,
            num_classes=num_classes,
            directed=directed,
        )

    @classmethod
    def from_scipy(
        cls,
        adjacency: scipy.sparse.sparray,
        *,
        features: Features | np.ndarray | scipy.sparse.sparray | None = None,
        labels: Int[Tensor, " nodes"] | np.ndarray | None = None,
        num_classes: int | None = None,
    ) -> Graph:
        """A graph from a square SciPy matrix, undirected if that is symmetric."""
        if adjacency.shape[0] != adjacency.shape[1]:
            raise UserError(f"An adjacency is square; this one is {adjacency.shape}.")
        rows = Adjacency.from_scipy(adjacency)
        return cls.build(
            rows,
            features=None if features is None else as_features(features),
            labels=None if labels is None else torch.as_tensor(labels),
            num_classes=num_classes,
            directed=not rows.is_symmetric,
        )

    @classmethod
    def from_pyg(cls, data: Data) -> Graph:
        """A graph from PyTorch Geometric: its edge_index, x, y and edge_weight."""
        weight = data.edge_weight if "edge_weight" in data else None
        nodes = int(data.num_nodes or 0)
        rows = Adjacency.from_edges(
            *data.edge_index, shape=(nodes, nodes), values=weight
        )
        return cls.build(
            rows,
            features=None if data.x is None else as_features(data.x),
            labels=None if data.y is None else data.y.reshape(nodes),
            directed=not rows.is_symmetric,
        )

    @classmethod
    def from_networkx(
        cls,
        graph: networkx.Graph,
        *,
        label: str | None = None,
        features: list[str] | None = None,
    ) -> Graph:
        """A graph from networkx; labels and features are the named node attributes.

        Nodes keep their order. Labels of any kind are numbered in sorted order; a node
        may have none.
        """
        nodes = {node: index for index, node in enumerate(graph.nodes)}
        ends = torch.tensor(
            [(nodes[u], nodes[v]) for u, v in graph.edges()], dtype=torch.int64
        ).reshape(-1, 2)
        attributes = [values for _, values in graph.nodes(data=True)]
        numbers = [
            [float(values[name]) for name in features or ()] for values in attributes
        ]
        labels, classes = encode_labels([values.get(label) for values in attributes])
        return cls.from_edges(
            ends[:, 0],
            ends[:, 1],
            num_nodes=len(nodes),
            features=torch.tensor(numbers, dtype=torch.float32).reshape(len(nodes), -1),
            labels=labels,
            num_classes=len(classes),
            directed=graph.is_directed(),
        )

    def to_pyg(self) -> Data:
        """PyTorch Geometric's `Data`; an edge for every entry, dense features."""
        from torch_geometric.data import Data

        target, weight = self.adjacency.indices.long(), self.adjacency.values
        return Data(
            x=self.features.to_dense(),
            y=self.labels,
            edge_index=torch.stack([self.adjacency.row_indices, target]),
            num_nodes=self.num_nodes,
            **({} if weight is None else {"edge_weight": weight}),
        )

    @property
    def num_nodes(self) -> int:
        return len(self.labels)

    @property
    def num_features(self) -> int:
        return self.features.shape[1]

    @cached_property
    def num_loops(self) -> int:
        """Number of self-loops."""
        return int(self.adjacency.diagonal.count_nonzero())

    @property
    def num_edges(self) -> int:
        """Number of edges; an undirected edge counts once."""
        nnz = self.adjacency.nnz
        return nnz if self.directed else (nnz + self.num_loops) // 2

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, with those of the node ids, which are made when used."""
        arrays = (self.adjacency, self.features, self.labels)
        return sum(array.nbytes for array in arrays) + 8 * self.num_nodes

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in self._counts().items())
        return f"Graph({counts})"

    def summary(self) -> TextTable:
        counts = self._counts()
        sizes = [] if self.num_classes > MAX_CLASSES_SHOWN else [self._class_sizes()]
        return TextTable.from_rows(
            "Graph", [*counts], [[*counts.values()]], below=sizes
        )

    def _counts(self) -> dict[str, str]:
        nnz = self.adjacency.nnz
        kind = "directed edges" if self.directed else "undirected edges"
        name, edges = (
            (kind, self.num_edges) if nnz <= MAX_COUNTED_NNZ else ("entries", nnz)
        )
        counts = {
            "nodes": self.num_nodes,
            name: edges,
            "features": self.num_features,
            "classes": self.num_classes,
        }
        return {name: f"{count:,}" for name, count in counts.items()}

    def _class_sizes(self) -> TextTable:
        sizes = (self.labels + 1).bincount(minlength=self.num_classes + 1).tolist()
        names = [*map(str, range(self.num_classes)), "unlabelled"]
        cells = [f"{size:,}" for size in (*sizes[1:], sizes[0])]
        return TextTable.from_rows("", ["class", *names], [["nodes", *cells]])

    @cached_property
    def ids(self) -> Ids:
        """The ids of the nodes in the full graph."""
        if self.node_ids is not None:
            return self.node_ids
        return torch.arange(self.num_nodes, device=self.labels.device)

    def select_rows(self, ids: Ids) -> Graph:
        """Some nodes with all edges that leave them."""
        return self.with_rows(ids, self.adjacency.select_rows(ids))

    def subgraph(self, ids: Ids, part: Ids | None = None) -> Graph:
        """Some nodes with the edges between them; within parts if they are given."""
        return self.with_rows(ids, self.adjacency.subgraph(ids, part))

    def head(self, count: int) -> Graph:
        """The first nodes with all their edges, sharing memory."""
        return self._slice(slice(0, count))

    def tail(self, count: int) -> Graph:
        """The last nodes with all their edges, sharing memory."""
        return self._slice(slice(self.num_nodes - count, self.num_nodes))

    def _slice(self, nodes: slice) -> Graph:
        if nodes == slice(0, self.num_nodes):
            return self
        return self.with_rows(nodes, self.adjacency[nodes])

    def with_rows(self, nodes: Ids | slice, adjacency: Adjacency) -> Graph:
        """Some nodes with other edges: a row of the adjacency for each of them."""
        return replace(
            self,
            adjacency=adjacency,
            features=select_features(self.features, nodes),
            labels=self.labels[nodes],
            node_ids=self.ids[nodes],
        )

    def to_undirected(self) -> Graph:
        """The undirected graph with the same edges."""
        if not self.directed:
            return self
        return replace(self, adjacency=self.adjacency.to_undirected(), directed=False)

    def to(self, device: torch.device | str) -> Graph:
        """The same graph on another device."""
        return replace(
            self,
            adjacency=self.adjacency.to(device),
            features=self.features.to(device),
            labels=self.labels.to(device),
            node_ids=None if self.node_ids is None else self.ids.to(device),
        )
