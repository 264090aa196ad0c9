"""Graph transforms before training: self-loops, row normalisation, undirected edges."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Features, Graph


@dataclass(frozen=True)
class Preparation:
    """Transforms from the stored graph to the input of a method, in this order.

    The `repr` is part of the hash of a dataset, so class and fields keep their names.
    """

    self_loops: bool = False
    """Add a self-loop to every node."""
    row_normalised: bool = False
    """Divide the features of each node by their sum."""
    symmetrised: bool = True
    """Make the graph undirected."""

    def apply(self, graph: Graph) -> Graph:
        """The graph as the paper's code passes it to a method."""
        if self.self_loops:
            graph = replace(graph, adjacency=add_self_loops(graph.adjacency))
        if self.row_normalised:
            graph = replace(graph, features=normalize_rows(graph.features))
        return graph.to_undirected() if self.symmetrised else graph


SYMMETRISED = Preparation()


def add_self_loops(adjacency: Adjacency) -> Adjacency:
    """The adjacency with a self-loop of weight 1 on every node that has none."""
    nodes, values = (adjacency.diagonal == 0).nonzero()[:, 0], adjacency.values
    if values is not None:
        values = torch.cat([values, values.new_ones(len(nodes))])
    return Adjacency.from_edges(
        torch.cat([adjacency.row_indices, nodes]),
        torch.cat([adjacency.indices.long(), nodes]),
        shape=adjacency.shape,
        values=values,
    )


def normalize_rows(features: Features) -> Features:
    """Features divided by their row sums; rows that sum to 0 become 0."""
    if not isinstance(features, Adjacency):
        return features * _safe_inverse(features.sum(1))[:, None]
    values = features.values
    if values is None:
        values = torch.ones(features.nnz)
    sums = torch.zeros(features.num_rows)
    sums.index_add_(0, features.row_indices, values)
    return replace(features, values=values * _safe_inverse(sums)[features.row_indices])


def _safe_inverse(sums: Float[Tensor, " nodes"]) -> Float[Tensor, " nodes"]:
    return torch.where(sums == 0, 0.0, 1 / sums)
