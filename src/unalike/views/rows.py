"""Rows of nodes over a known graph: those of its own nodes, or of new ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from unalike.data.adjacency import Adjacency, Ids
from unalike.data.graph import Features, Graph
from unalike.views.walks import Columns, Walk, Walks, indicators, kept_entries


@dataclass(frozen=True, eq=False)
class KnownGraph:
    """A graph with known labels, whose nodes the rows of views are made of."""

    graph: Graph
    walks: Walks
    vectors: dict[str, Float[Tensor, "columns rank"]] = field(default_factory=dict)
    """Singular vectors that rows are projected on, by name, once they are computed."""

    @classmethod
    def of(
        cls, graph: Graph, hops: int, device: torch.device | str = "cpu"
    ) -> KnownGraph:
        """A graph whose views are computed on a device, or on the CPU if the graph does
        not fit there."""
        walks = Walks.of(graph, hops, device)
        if not walks.fit_on_device:
            walks = replace(walks, device=torch.device("cpu"))
        return cls(graph, walks)

    @property
    def device(self) -> torch.device:
        """Where views are computed."""
        return self.walks.device

    @property
    def directions(self) -> list[str]:
        """The steps along edges."""
        return [step for step in "oia" if step in self.walks.matrices]

    def all_rows(self) -> NodeRows:
        return NodeRows(
            self.walks.matrices,
            self.graph.features,
            self.graph.adjacency.diagonal,
            torch.arange(self.graph.num_nodes),
            self.walks.on_device,
        )

    def new_rows(
        self, edges: Adjacency, features: Features, ids: Ids | None
    ) -> NodeRows:
        """Rows by their edges to nodes of the graph; `ids` where they are among them.

        Of a directed graph edges are [out, in]. A new node has a self-loop if all nodes
        of the graph have one.
        """
        nodes, diagonal = self.graph.num_nodes, self.graph.adjacency.diagonal
        if ids is None:
            loop = float(len(diagonal) > 0 and bool(diagonal.all()))
            loops = torch.full((features.shape[0],), loop)
        else:
            own, loops = ids, diagonal[ids]
            edges = kept_entries(edges, lambda row, column: own[row] != column % nodes)
        matrix, matrices = edges.to_scipy(), {}
        for number, step in enumerate(self.directions):
            part = matrix[:, number * nodes : (number + 1) * nodes]
            matrices[step] = Adjacency.from_scipy(part, weighted=False)
        if "x" in self.walks.matrices:
            matrices["x"] = indicators(features)
        return NodeRows(matrices, features, loops, ids)


@dataclass(frozen=True, eq=False)
class NodeRows:
    """Edges and features of some nodes, by which their views are made."""

    matrices: Mapping[str, Adjacency]
    """For each step, the nodes of the known graph or the features that it leads to."""
    features: Features
    loops: Float[Tensor, " rows"]
    ids: Ids | None
    """The nodes in the known graph; None if they are new."""
    whole: Mapping[str, Adjacency] | None = None
    """The matrices on the device where views are computed, if these are all nodes of
    the known graph, in their order."""

    @property
    def operands(self) -> Mapping[str, Adjacency]:
        """The matrices where they are multiplied."""
        return self.matrices if self.whole is None else self.whole

    @property
    def num_rows(self) -> int:
        return self.features.shape[0]

    def folds(self, fine: Int[Tensor, " nodes"]) -> Int[Tensor, " rows"]:
        """The fine fold of each row; new nodes are read like those of fold 0."""
        if self.ids is None:
            return torch.zeros(self.num_rows, dtype=torch.int64)
        return fine[self.ids]

    def sums(
        self, walks: Walks, x: Columns, chosen: Sequence[Walk] | None = None
    ) -> Iterator[tuple[Walk, Columns]]:
        """For each walk from the rows, the sum of x over the nodes where it ends."""
        if self.whole is not None:
            yield from walks.sums(x, chosen)
            return
        for walk, ends in walks.ends(x, chosen):
            yield walk, self.matrices[walk.steps[0]] @ ends


def unit_rows(rows: Adjacency) -> Adjacency:
    """Rows divided by their length."""
    values = torch.ones(rows.nnz) if rows.values is None else rows.values
    squares = torch.zeros(rows.num_rows).index_add(0, rows.row_indices, values**2)
    scale = 1 / squares.sqrt().clamp(min=1e-9)
    return Adjacency(
        rows.indptr, rows.indices, rows.num_cols, values * scale[rows.row_indices]
    )
