"""Adjacency rows and features of nodes that were not in the training graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import scipy.sparse
import torch

from unalike.data.adjacency import Adjacency, NewRows
from unalike.data.graph import Features, Graph, as_features
from unalike.datasets.transforms import normalize_rows
from unalike.errors import InputError, UserError

Pairs: TypeAlias = (
    Iterable[tuple[int, int | str] | tuple[int, int | str, float]] | np.ndarray
)
"""The index of a new node, from 0, and the user's id of a training node.

In a graph of weighted edges the weight is third.
"""
EdgesLike: TypeAlias = Adjacency | scipy.sparse.sparray | scipy.sparse.spmatrix | Pairs
"""Sparse rows with a column for each training node, or pairs."""
AnyFeatures: TypeAlias = (
    Features | np.ndarray | scipy.sparse.sparray | scipy.sparse.spmatrix
)
IdLookup: TypeAlias = Callable[[pa.Array], np.ndarray]
"""The index of each training node by its id, -1 for unknown ids."""

HASHED_ENTRIES = 1 << 20
"""Column indices of an adjacency that its hash covers, at most."""


@dataclass(frozen=True, kw_only=True)
class TrainingGraph:
    """Shape and hash of the graph that a model was trained on.

    The field names are keys of model files.
    """

    name: str
    num_known: int
    """Nodes that can be neighbours: the columns of the adjacency."""
    num_features: int
    sparse: bool
    """Are the features sparse?"""
    num_classes: int
    directed: bool
    fingerprint: str
    """The `adjacency_hash` of the graph."""
    row_normalised: bool = False
    """Were the features of each node divided by their sum?"""
    weighted: bool = False
    """Did its edges have weights?"""

    @classmethod
    def of(
        cls, graph: Graph, name: str = "", *, row_normalised: bool = False
    ) -> TrainingGraph:
        return cls(
            name=name,
            num_known=graph.adjacency.num_cols,
            num_features=graph.num_features,
            sparse=isinstance(graph.features, Adjacency),
            num_classes=graph.num_classes,
            directed=graph.directed,
            fingerprint=adjacency_hash(graph.adjacency),
            row_normalised=row_normalised,
            weighted=graph.adjacency.values is not None,
        )

    def rows_graph(self, rows: Adjacency, features: Features) -> Graph:
        """A graph of unlabelled rows with the number of classes of this one."""
        return Graph.build(
            rows,
            features=features,
            num_classes=self.num_classes,
            directed=self.directed,
        )

    def check(self, graph: Graph) -> None:
        """Raise if a graph is not the one that the model was trained on."""
        num_nodes, num_features = graph.adjacency.num_cols, graph.num_features
        if (num_nodes, num_features) != (self.num_known, self.num_features):
            raise UserError(
                f"The model knows {self.num_known:,} nodes with {self.num_features:,} "
                f"features; this graph has {num_nodes:,} with {num_features:,}."
            )
        if adjacency_hash(graph.adjacency) != self.fingerprint:
            name = f" '{self.name}'" if self.name else ""
            raise UserError(
                f"The model was trained on another graph{name}: "
                "as many nodes, but other edges."
            )


def adjacency_hash(adjacency: Adjacency) -> str:
    """SHA-256 of all degrees and of evenly spaced column indices."""
    step = max(1, adjacency.nnz // HASHED_ENTRIES)
    digest = sha256(adjacency.degrees.cpu().numpy().astype(np.int64).tobytes())
    digest.update(adjacency.indices[::step].cpu().numpy().astype(np.int64).tobytes())
    return digest.hexdigest()


def build_rows(
    out_edges: EdgesLike,
    in_edges: EdgesLike | None,
    lookup_ids: IdLookup,
    training_graph: TrainingGraph,
    num_rows: int | None,
) -> tuple[NewRows, int]:
    """The rows of new nodes, and how many of their neighbours are unknown."""
    rows_of = partial(
        _rows_of, lookup_ids=lookup_ids, graph=training_graph, num_rows=num_rows
    )
    out, num_unknown = rows_of(out_edges)
    into = out
    if in_edges is not None:
        into, num_unknown_in = rows_of(in_edges)
        num_unknown += num_unknown_in
    elif training_graph.directed:
        into = Adjacency.empty(out.shape)
    if out.num_rows != into.num_rows:
        raise UserError(
            f"Edges leave {out.num_rows} new nodes and enter {into.num_rows}; "
            "give the features of all new nodes, or rows for all of them."
        )
    return NewRows.of(out, into, directed=training_graph.directed), num_unknown


def _rows_of(
    edges: EdgesLike, lookup_ids: IdLookup, graph: TrainingGraph, num_rows: int | None
) -> tuple[Adjacency, int]:
    if scipy.sparse.issparse(edges):
        edges = Adjacency.from_scipy(edges)
    if not isinstance(edges, Adjacency):
        return _rows_from_pairs(edges, lookup_ids, graph, num_rows)
    if edges.num_cols != graph.num_known or num_rows not in (None, edges.num_rows):
        expected = edges.num_rows if num_rows is None else num_rows
        raise UserError(
            f"The rows of new nodes are {edges.num_rows} x {edges.num_cols}; they "
            f"should be {expected} x {graph.num_known}, a column for each known node."
        )
    return edges, 0


def _rows_from_pairs(
    pairs: Pairs, lookup_ids: IdLookup, graph: TrainingGraph, num_rows: int | None
) -> tuple[Adjacency, int]:
    edges: list[tuple[Any, ...]] = [tuple(pair) for pair in pairs]
    if any(len(edge) != 2 + graph.weighted for edge in edges):
        raise UserError(
            "An edge is the number of a new node, a known id and its weight; the model "
            "has learned from weights."
            if graph.weighted
            else "An edge is a pair: the number of a new node and a known id."
        )
    has_text = any(isinstance(edge[1], str) for edge in edges)
    id_type = pa.large_string() if has_text else pa.int64()
    try:
        source = np.array([edge[0] for edge in edges], np.int64)
        target = lookup_ids(pa.array([edge[1] for edge in edges], id_type))
        weights = torch.tensor([float(edge[2]) for edge in edges if graph.weighted])
    except (ValueError, TypeError, pa.ArrowException):
        raise UserError(
            "The edges of new nodes are pairs of a number from 0 on and a known id, "
            "and the ids are all numbers or all text."
        ) from None
    if num_rows is None:
        num_rows = int(source.max(initial=-1)) + 1
    known = target >= 0
    rows = Adjacency.from_edges(
        torch.from_numpy(source[known]),
        torch.from_numpy(target[known].astype(np.int64)),
        shape=(num_rows, graph.num_known),
        values=weights[torch.from_numpy(known)] if graph.weighted else None,
    )
    return rows, int((~known).sum())


def match_features(features: AnyFeatures, training_graph: TrainingGraph) -> Features:
    """Features with the width, layout and normalisation of the training graph."""
    x = as_feature_matrix(features)
    if x.shape[1] != training_graph.num_features:
        raise InputError(
            f"The features are {' x '.join(map(str, x.shape))}; the model was trained "
            f"on {training_graph.num_features} for each node."
        )
    check_finite(x)
    if training_graph.sparse and not isinstance(x, Adjacency):
        x = Adjacency.from_dense(x)
    elif not training_graph.sparse and isinstance(x, Adjacency):
        x = x.to_dense()
    return normalize_rows(x) if training_graph.row_normalised else x


def as_feature_matrix(features: AnyFeatures) -> Features:
    """A float tensor or sparse matrix of features from an array of any kind."""
    is_matrix = isinstance(features, torch.Tensor | Adjacency)
    x = features if is_matrix or scipy.sparse.issparse(features) else np.array(features)
    if len(x.shape) != 2:
        raise InputError(
            "Features have two dimensions, nodes and columns; these have "
            f"{len(x.shape)}."
        )
    try:
        return as_features(x)
    except (TypeError, ValueError, RuntimeError):
        raise InputError("Features are numbers, a row for each node.") from None


def check_finite(features: Features) -> None:
    """Raise if a feature is NaN or infinite, and name the first one."""
    values = features.values if isinstance(features, Adjacency) else features
    if values is None or bool(torch.isfinite(values).all()):
        return
    position = (~torch.isfinite(values)).nonzero()[0].tolist()
    if isinstance(features, Adjacency):
        (entry,) = position
        position = [int(features.row_indices[entry]), int(features.indices[entry])]
    row, column = position
    raise InputError(f"Feature {column} of node {row} is not a finite number.")
