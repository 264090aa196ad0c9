"""`NewRows`: edges between new nodes and the nodes of a graph, in both directions."""

from __future__ import annotations

from dataclasses import dataclass, field

from unalike.data.adjacency import Adjacency


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
