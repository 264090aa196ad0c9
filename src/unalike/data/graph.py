"""`Graph`: adjacency, features and labels; label encoding, subgraphs, conversions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

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


def as_features(features: Any) -> Features:
    """A float tensor or a sparse matrix, also from a DataFrame of numbers."""
    if isinstance(features, Adjacency):
        return features
    if scipy.sparse.issparse(features):
        return Adjacency.from_scipy(features)
    if hasattr(features, "columns"):
        features = dataframe_to_numpy(features)
    tensor = torch.as_tensor(features)
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    return tensor if tensor.is_floating_point() else tensor.float()


def dataframe_to_numpy(frame: Any) -> np.ndarray:
    """The numbers of a DataFrame of pandas or polars, a column for each feature."""
    columns = []
    for name in frame.columns:
        values = np.asarray(frame[name])
        try:
            columns.append(values.astype(np.float32))
        except (TypeError, ValueError):
            raise UserError(
                f"The column '{name}' of the features has values that are no numbers; "
                "unalike.import_graph encodes categories and missing values."
            ) from None
        if not np.isfinite(columns[-1]).all():
            raise UserError(
                f"The column '{name}' of the features has missing or infinite values; "
                "fill them, or use unalike.import_graph."
            )
    return np.stack(columns, 1) if columns else np.zeros((len(frame), 0), np.float32)


def as_node_ids(values: Any, what: str) -> Ids:
    """Ids of nodes from a list, an array, a Series or a tensor of integers."""
    ids = values.numpy(force=True) if isinstance(values, Tensor) else np.asarray(values)
    if not ids.size:
        return torch.zeros(0, dtype=torch.int64)
    if ids.dtype.kind not in "iu":
        raise UserError(
            f"The {what} ids are of the type {ids.dtype}; here they are integers from "
            "0 on, and unalike.import_graph takes ids of any kind."
        )
    if ids.min() < 0:
        raise UserError(f"The {what} id {ids.min()} is below 0.")
    return torch.from_numpy(ids.astype(np.int64))


def as_edge_weights(weights: Any, num_edges: int) -> Float[Tensor, " edges"]:
    """Weights of edges from a list, an array, a Series or a tensor of numbers."""
    numbers = weights.numpy(force=True) if isinstance(weights, Tensor) else weights
    try:
        numbers = np.asarray(numbers, np.float64)
    except (TypeError, ValueError):
        raise UserError("Edge weights are numbers.") from None
    if numbers.shape != (num_edges,):
        raise UserError(f"{num_edges} edges need {num_edges} weights, in one list.")
    if not (np.isfinite(numbers) & (numbers > 0)).all():
        raise UserError("Edge weights are finite numbers above 0.")
    return torch.from_numpy(numbers)


def as_labels(
    labels: Any, unlabelled: Any = -1
) -> tuple[Int[Tensor, " nodes"], list[Hashable] | None]:
    """Labels as class numbers, -1 where unknown, and the names of the classes.

    Integers from 0 on are class numbers and have no names. Other values, such as text
    or -1 and 1 with another marker, are numbered in sorted order. None, NaN, `pd.NA`
    and the value `unlabelled` mean that a node has no label.
    """
    values = labels.numpy(force=True) if isinstance(labels, Tensor) else labels
    values = np.asarray(values)
    if values.ndim != 1:
        raise UserError(f"Labels have one dimension; these have {values.ndim}.")
    if values.dtype.kind in "bf":
        values = _as_integers(values, unlabelled)
    if values.dtype.kind in "iu":
        missing = np.zeros(len(values), bool)
        if unlabelled is not None:
            missing = values == unlabelled
        if (values[~missing] >= 0).all():
            codes = np.where(missing, -1, values).astype(np.int64)
            return torch.from_numpy(codes), None
    named = [None if is_missing(one, unlabelled) else one for one in values.tolist()]
    return encode_labels(named)


def _as_integers(values: np.ndarray, unlabelled: Any) -> np.ndarray:
    """Whole numbers and booleans as integers; NaN as the marker, or as None."""
    known = (
        ~np.isnan(values) if values.dtype.kind == "f" else np.ones(len(values), bool)
    )
    if (values[known] != np.floor(values[known].astype(float))).any():
        raise UserError(
            "Labels are classes, and these are numbers with fractions; "
            "unalike.quantile_labels makes classes of numbers, and targets= takes "
            "numbers to predict."
        )
    if known.all():
        return values.astype(np.int64)
    if isinstance(unlabelled, int):
        return np.where(known, values, unlabelled).astype(np.int64)
    integers = np.empty(len(values), object)
    integers[known] = values[known].astype(np.int64)
    return integers


def is_missing(label: Any, unlabelled: Any) -> bool:
    """Whether a label is None, NaN, `pd.NA` or the marker of nodes without one."""
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    return bool(label != label) or (unlabelled is not None and label == unlabelled)


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


def number_labels(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The position of each number among the different ones, -1 for NaN; and these."""
    known = ~np.isnan(numbers)
    labels = np.full(len(numbers), -1)
    values, labels[known] = np.unique(numbers[known], return_inverse=True)
    return labels, values


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
    class_names: Sequence[Hashable] | None = None
    """The names of the classes; None where they are 0, 1, 2, …"""
    label_values: Float[Tensor, " labels"] | None = None
    """The number that each label stands for, where numbers are predicted."""

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
        labels: Any = None,
        num_classes: int | None = None,
        directed: bool = False,
        unlabelled: Any = -1,
        targets: Any = None,
    ) -> Graph:
        """A graph from its adjacency; no features or labels unless given.

        Labels may be numbers, text or a Series; `unlabelled` marks nodes without one.
        Targets are numbers to predict instead of classes, NaN where unknown.
        """
        nodes = adjacency.num_rows
        names: Sequence[Hashable] | None = None
        values = None
        if targets is not None:
            numbers, different = number_labels(np.asarray(targets, np.float64))
            labels, values = torch.from_numpy(numbers), torch.from_numpy(different)
        elif labels is None:
            labels = torch.full((nodes,), -1)
        else:
            labels, names = as_labels(labels, unlabelled)
        if names is not None:
            num_classes = max(num_classes or 0, len(names))
        needed = int(labels.max()) + 1 if nodes else 0
        if num_classes is None:
            num_classes = needed
        if values is None and needed > num_classes:
            raise UserError(
                f"The label {needed - 1} is not one of {num_classes} classes; "
                "they begin at 0."
            )
        return cls(
            adjacency=adjacency,
            features=torch.zeros(nodes, 0) if features is None else features,
            labels=labels,
            num_classes=num_classes if values is None else 1,
            directed=directed,
            class_names=names,
            label_values=values,
        )

    @classmethod
    def from_edges(
        cls,
        source: Any,
        target: Any,
        *,
        num_nodes: int | None = None,
        features: Any = None,
        labels: Any = None,
        num_classes: int | None = None,
        directed: bool = False,
        unlabelled: Any = -1,
        targets: Any = None,
        weights: Any = None,
    ) -> Graph:
        """A graph from pairs of node ids; repeated pairs merge, their weights add up.

        Ids are lists, arrays, Series or tensors of integers. Without `num_nodes`, the
        labels or features, else the largest id, say how many nodes there are.
        """
        source, target = as_node_ids(source, "source"), as_node_ids(target, "target")
        if len(source) != len(target):
            raise UserError(f"{len(source)} sources do not fit {len(target)} targets.")
        if num_nodes is None:
            sizes = [len(part) for part in (labels, targets) if part is not None]
            sizes += [] if features is None else [features.shape[0]]
            largest = [int(ids.max()) for ids in (source, target) if len(ids)]
            num_nodes = sizes[0] if sizes else max(largest, default=-1) + 1
        values = None if weights is None else as_edge_weights(weights, len(source))
        if not directed:
            # One order of both ends, so that the weights of (u, v) and (v, u) add up.
            low, high = torch.minimum(source, target), torch.maximum(source, target)
            source, target = low, high
        rows = Adjacency.from_edges(
            source, target, shape=(num_nodes, num_nodes), values=values
        )
        return cls.build(
            rows if directed else rows.to_undirected(),
            features=None if features is None else as_features(features),
            labels=labels,
            num_classes=num_classes,
            directed=directed,
            unlabelled=unlabelled,
            targets=targets,
        )

    @classmethod
    def from_scipy(
        cls,
        adjacency: scipy.sparse.sparray,
        *,
        features: Any = None,
        labels: Any = None,
        num_classes: int | None = None,
        unlabelled: Any = -1,
        targets: Any = None,
    ) -> Graph:
        """A graph from a square SciPy matrix, undirected if that is symmetric.

        Features are an array, a sparse matrix or a DataFrame of numbers; labels are
        class numbers or names, with None or `unlabelled` where there is none.
        """
        if adjacency.shape[0] != adjacency.shape[1]:
            raise UserError(f"An adjacency is square; this one is {adjacency.shape}.")
        rows = Adjacency.from_scipy(adjacency)
        return cls.build(
            rows,
            features=None if features is None else as_features(features),
            labels=labels,
            num_classes=num_classes,
            directed=not rows.is_symmetric,
            unlabelled=unlabelled,
            targets=targets,
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
        weight: str | None = None,
    ) -> Graph:
        """A graph from networkx; labels and features are the named node attributes.

        Nodes keep their order. Labels of any kind are numbered in sorted order; a node
        may have none. Edges without the attribute `weight` have the weight 1.
        """
        nodes = {node: index for index, node in enumerate(graph.nodes)}
        ends = torch.tensor(
            [(nodes[u], nodes[v]) for u, v in graph.edges()], dtype=torch.int64
        ).reshape(-1, 2)
        attributes = [values for _, values in graph.nodes(data=True)]
        names = features or ()
        numbers = [[float(values[name]) for name in names] for values in attributes]
        labels, classes = encode_labels([values.get(label) for values in attributes])
        built = cls.from_edges(
            ends[:, 0],
            ends[:, 1],
            num_nodes=len(nodes),
            features=torch.tensor(numbers, dtype=torch.float32).reshape(len(nodes), -1),
            labels=labels,
            num_classes=len(classes),
            directed=graph.is_directed(),
            weights=weight and [one for *_, one in graph.edges(data=weight, default=1)],
        )
        named = classes != [*range(len(classes))]
        return replace(built, class_names=classes) if named else built

    def to_pyg(self) -> Data:
        """PyTorch Geometric's `Data`; an edge for every entry, dense features."""
        from torch_geometric.data import Data

        weight = self.adjacency.values
        return Data(
            x=self.features.to_dense(),
            y=self.labels,
            edge_index=self.adjacency.edge_index,
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
    def outgoing(self) -> Adjacency:
        """A of the adjacency [A, Aᵀ]."""
        return self.adjacency.select_columns(range(self.adjacency.num_cols // 2))

    @cached_property
    def incoming(self) -> Adjacency:
        """Aᵀ of the adjacency [A, Aᵀ]."""
        width = self.adjacency.num_cols
        return self.adjacency.select_columns(range(width // 2, width))

    @cached_property
    def num_loops(self) -> int:
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
        nnz, values = self.adjacency.nnz, self.label_values
        kind = "directed edges" if self.directed else "undirected edges"
        counted = nnz <= MAX_COUNTED_NNZ
        counts = {
            "nodes": self.num_nodes,
            kind if counted else "entries": self.num_edges if counted else nnz,
            "features": self.num_features,
            "classes" if values is None else "different labels": (
                self.num_classes if values is None else len(values)
            ),
        }
        return {name: f"{count:,}" for name, count in counts.items()}

    def _class_sizes(self) -> TextTable:
        sizes = (self.labels + 1).bincount(minlength=self.num_classes + 1).tolist()
        names = [*map(str, self.class_names or range(self.num_classes)), "unlabelled"]
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
        return self._copy(lambda array: array.to(device))

    def pin_memory(self) -> Graph:
        """The same graph in pinned memory, for asynchronous copies to a GPU."""
        return self._copy(lambda array: array.pin_memory())

    def _copy(self, copy: Callable[[Any], Any]) -> Graph:
        return replace(
            self,
            adjacency=copy(self.adjacency),
            features=copy(self.features),
            labels=copy(self.labels),
            node_ids=None if self.node_ids is None else copy(self.node_ids),
        )
