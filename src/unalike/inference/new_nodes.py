"""Adjacency rows and features of nodes that were not in the training graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import scipy.sparse
import torch

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Features, Graph, as_features
from unalike.datasets.transforms import normalize_rows
from unalike.errors import InputError, UserError

# Facts: what a model remembers of the graph that it learned from.


HASHED_ENTRIES = 1 << 20
"""Entries of an adjacency that its fingerprint looks at."""


@dataclass(frozen=True, kw_only=True)
class TrainingGraph:
    """The shape of a graph, and how its nodes are to be told from another's."""

    name: str
    num_known: int
    """Nodes that can be neighbours: the columns of the adjacency."""
    num_features: int
    sparse: bool
    """Are its features sparse?"""
    num_classes: int
    directed: bool
    adjacency_hash: str
    """A digest of its degrees and of some entries."""
    row_normalised: bool = False
    """Were the features of each node divided by their sum?"""

    @classmethod
    def of(
        cls, graph: Graph, name: str = "", *, row_normalised: bool = False
    ) -> TrainingGraph:
        """The facts of a graph that is about to be learned from."""
        return cls(
            name=name,
            num_known=graph.adjacency.num_cols,
            num_features=graph.num_features,
            sparse=isinstance(graph.features, Adjacency),
            num_classes=graph.num_classes,
            directed=graph.directed,
            adjacency_hash=adjacency_hash(graph.adjacency),
            row_normalised=row_normalised,
        )

    def rows_graph(self, rows: Adjacency, features: Features) -> Graph:
        """A graph of some rows, all of them without a label."""
        return Graph.build(
            rows,
            features=features,
            num_classes=self.num_classes,
            directed=self.directed,
        )

    def check(self, graph: Graph) -> None:
        """Refuse a graph whose nodes are not those that the model knows."""
        told = (graph.adjacency.num_cols, graph.num_features)
        if told != (self.num_known, self.num_features):
            raise UserError(
                f"The model knows {self.num_known:,} nodes with {self.num_features:,} "
                f"features; this graph has {told[0]:,} with {told[1]:,}."
            )
        if adjacency_hash(graph.adjacency) != self.adjacency_hash:
            of = f" '{self.name}'" if self.name else ""
            raise UserError(
                f"The model is of another graph{of}: as many nodes, but other edges."
            )


def adjacency_hash(adjacency: Adjacency) -> str:
    """A digest of all degrees and of evenly spread entries."""
    step = max(1, adjacency.nnz // HASHED_ENTRIES)
    digest = sha256(adjacency.degrees.cpu().numpy().astype(np.int64).tobytes())
    digest.update(adjacency.indices[::step].cpu().numpy().astype(np.int64).tobytes())
    return digest.hexdigest()


# NewRows: the edges of nodes that are not among the columns, both ways.


Pairs: TypeAlias = Iterable[tuple[int, int | str]] | np.ndarray
"""The number of a new node from 0 on, and the user's own id of a known one."""
EdgesLike: TypeAlias = Adjacency | scipy.sparse.sparray | scipy.sparse.spmatrix | Pairs
"""Sparse rows with a column for each known node, or pairs."""
IdLookup: TypeAlias = Callable[[pa.Array], np.ndarray]
"""The number of each known node by its id, -1 for others."""


@dataclass(frozen=True, eq=False)
class NewRows(Adjacency):
    """Row u holds the known nodes that the new node u points at.

    New nodes are no columns, so that what points at them cannot be read off the same
    entries. It is given beside them, and stands where a square adjacency has its
    mirror image: a method prepares both kinds of rows by the same words.
    """

    in_edges: Adjacency = field(kw_only=True)
    """Row u holds the known nodes that point at u."""

    @classmethod
    def of(cls, out: Adjacency, into: Adjacency, *, directed: bool) -> NewRows:
        """The rows of new nodes; in an undirected graph either direction is both."""
        if not directed and into is not out:
            out = into = out.union(into)
        return cls(out.indptr, out.indices, out.num_cols, out.values, in_edges=into)

    @property
    def T(self) -> Adjacency:
        return self.in_edges

    def to_undirected(self) -> Adjacency:
        same = self.in_edges.indices is self.indices
        return self.in_edges if same else self.union(self.in_edges)


def build_rows(
    given: tuple[EdgesLike, EdgesLike | None],
    find: IdLookup,
    facts: TrainingGraph,
    num_rows: int | None,
) -> tuple[NewRows, int]:
    """The rows of new nodes, and how many of their neighbours are unknown.

    What is given leaves the new nodes, or enters them.
    """
    leaving, entering = given
    out, unknown = _known_rows(leaving, find, facts.num_known, num_rows)
    if entering is None:
        into = empty_rows(out) if facts.directed else out
    else:
        into, more = _known_rows(entering, find, facts.num_known, num_rows)
        unknown += more
    if out.num_rows != into.num_rows:
        raise UserError(
            f"Edges leave {out.num_rows} new nodes and enter {into.num_rows}; "
            "give the features of all new nodes, or rows for all of them."
        )
    return NewRows.of(out, into, directed=facts.directed), unknown


def empty_rows(rows: Adjacency) -> Adjacency:
    """As many rows, all of them empty."""
    none = torch.zeros(0, dtype=torch.int64)
    return Adjacency.from_edges(none, none, shape=rows.shape)


def _known_rows(
    given: EdgesLike, find: IdLookup, width: int, num_rows: int | None
) -> tuple[Adjacency, int]:
    if scipy.sparse.issparse(given):
        given = Adjacency.from_scipy(given)
    if not isinstance(given, Adjacency):
        return _from_pairs(given, find, width, num_rows)
    if given.num_cols != width or num_rows not in (None, given.num_rows):
        needed = given.num_rows if num_rows is None else num_rows
        raise UserError(
            f"The rows of new nodes are {given.num_rows} x {given.num_cols}; they should "
            f"be {needed} x {width}, a column for each known node."
        )
    return given, 0


def _from_pairs(
    pairs: Pairs, find: IdLookup, width: int, num_rows: int | None
) -> tuple[Adjacency, int]:
    ends = [tuple(pair) for pair in pairs]
    if any(len(pair) != 2 for pair in ends):
        raise UserError("An edge is a pair: the number of a new node and a known id.")
    try:
        new = np.array([pair[0] for pair in ends], np.int64)
        known = find(pa.array([pair[1] for pair in ends], _kind(ends)))
    except (ValueError, TypeError, pa.ArrowException):
        raise UserError(
            "The edges of new nodes are pairs of a number from 0 on and a known id, "
            "and the ids are all numbers or all text."
        ) from None
    size = num_rows if num_rows is not None else int(new.max(initial=-1)) + 1
    there = known >= 0
    rows = Adjacency.from_edges(
        torch.from_numpy(new[there]),
        torch.from_numpy(known[there].astype(np.int64)),
        shape=(size, width),
    )
    return rows, int((~there).sum())


def _kind(ends: list[tuple[int, int | str]]) -> pa.DataType:
    text = any(isinstance(known, str) for _, known in ends)
    return pa.large_string() if text else pa.int64()


# New features: whatever numbers are told of new nodes, as the model wants them.


AnyFeatures: TypeAlias = (
    Features | np.ndarray | scipy.sparse.sparray | scipy.sparse.spmatrix
)


def match_features(given: AnyFeatures, facts: TrainingGraph) -> Features:
    """Features of the width and the kind that a model was trained on."""
    features = as_feature_matrix(given)
    if features.shape[1] != facts.num_features:
        told = " x ".join(map(str, features.shape))
        raise InputError(
            f"The features are {told}; the model was trained on "
            f"{facts.num_features} for each node."
        )
    check_finite(features)
    if facts.sparse and not isinstance(features, Adjacency):
        features = Adjacency.from_scipy(scipy.sparse.csr_array(features.numpy()))
    elif not facts.sparse and isinstance(features, Adjacency):
        features = features.to_dense()
    return normalize_rows(features) if facts.row_normalised else features


def as_feature_matrix(given: AnyFeatures) -> Features:
    """Features as unalike holds them, or an error that says what they should be."""
    numbers = np.array(given) if _needs_copy(given) else given
    if len(numbers.shape) != 2:
        raise InputError(
            "Features have two dimensions, nodes and columns; these have "
            f"{len(numbers.shape)}."
        )
    try:
        return as_features(numbers)
    except (TypeError, ValueError, RuntimeError):
        raise InputError("Features are numbers, a row for each node.") from None


def _needs_copy(given: AnyFeatures) -> bool:
    """Is it neither a tensor nor sparse, and to be copied?"""
    known = isinstance(given, torch.Tensor | Adjacency)
    return not (known or scipy.sparse.issparse(given))


def check_finite(features: Features) -> None:
    """Refuse features that are no numbers, and say which."""
    values = features.values if isinstance(features, Adjacency) else features
    if values is None or bool(torch.isfinite(values).all()):
        return
    place = (~torch.isfinite(values)).nonzero()[0].tolist()
    if isinstance(features, Adjacency):
        rows = features.row_indices, features.indices
        place = [int(part[place[0]]) for part in rows]
    row, column = place
    raise InputError(f"Feature {column} of node {row} is not a finite number.")
