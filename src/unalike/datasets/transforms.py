"""What the paper does before training: self-loops, row-normalised features, undirected edges."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Features, Graph


@dataclass(frozen=True)
class Preparation:
    """Steps from the stored graph to the model's input, in this order."""

    self_loops: bool = False
    """Every node points at itself."""
    row_normalised: bool = False
    """The features of a node are divided by their sum."""
    symmetrised: bool = True
    """Every edge goes both ways."""

    def apply(self, graph: Graph) -> Graph:
        """The graph as the paper's methods get it."""
        if self.self_loops:
            graph = replace(graph, adjacency=add_self_loops(graph.adjacency))
        if self.row_normalised:
            graph = replace(graph, features=normalize_rows(graph.features))
        return graph.to_undirected() if self.symmetrised else graph


SYMMETRISED = Preparation()


def add_self_loops(adjacency: Adjacency) -> Adjacency:
    """The same rows with an entry on the whole diagonal."""
    loops = torch.arange(adjacency.num_rows)
    return Adjacency.from_edges(
        torch.cat([adjacency.row_indices, loops]),
        torch.cat([adjacency.indices.long(), loops]),
        shape=adjacency.shape,
    )


def normalize_rows(features: Features) -> Features:
    """Features whose rows sum to 1; empty rows stay empty."""
    if not isinstance(features, Adjacency):
        return features * _inverse(features.sum(1))[:, None]
    entries = features.values
    if entries is None:
        entries = torch.ones(features.nnz)
    sums = torch.zeros(features.num_rows)
    sums.index_add_(0, features.row_indices, entries)
    return replace(features, values=entries * _inverse(sums)[features.row_indices])


def _inverse(sums: Float[Tensor, " nodes"]) -> Float[Tensor, " nodes"]:
    return torch.where(sums == 0, 0.0, 1 / sums)
