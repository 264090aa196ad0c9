"""Inclusion: how often a sampler takes each node and edge, and what makes up for it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from unalike.adjacency import Adjacency, Ids
from unalike.graph import Graph
from unalike.kernels.compiled import compiled

COVERAGE = 50
"""Times that an average node is drawn before its frequency is trusted."""

Sampler = Callable[[Graph, torch.Generator], Ids]


@dataclass(frozen=True, eq=False)
class Inclusion:
    """Weights that make an average over subgraphs that of the graph.

    Of N subgraphs, C(v) hold node v and C(u, v) hold the edge from u to v. The loss of
    v counts N / C(v) times, and what v gathers from u counts C(v) / C(u, v) times.
    What was never seen counts as seen once (Zeng et al. 2020, section 3.2).
    """

    loss_weight: Float[Tensor, " nodes"]
    adjacency: Adjacency

    @classmethod
    def estimate(cls, graph: Graph, sample: Sampler) -> Inclusion:
        """Frequencies in subgraphs drawn from a seed of their own."""
        rows = graph.adjacency.to("cpu")
        starts, columns = rows.starts.numpy(), rows.columns.numpy()
        of_nodes = np.zeros(graph.num_nodes, np.int32)
        of_edges = np.zeros(rows.num_entries, np.int32)
        chance, drawn, samples = torch.Generator().manual_seed(0), 0, 0
        while drawn < COVERAGE * graph.num_nodes:
            ids = sample(graph, chance).cpu().numpy()
            _count(starts, columns, ids, of_nodes, of_edges)
            drawn, samples = drawn + max(1, len(ids)), samples + 1
        node_count = torch.from_numpy(of_nodes).clamp(min=1).float()
        edge_count = torch.from_numpy(of_edges).clamp(min=1).float()
        values = node_count[rows.columns.long()] / edge_count
        if rows.values is not None:
            values = values * rows.values
        weighted = Adjacency(rows.starts, rows.columns, rows.width, values)
        device = graph.labels.device
        return cls((samples / node_count).to(device), weighted.to(device))

    def weigh(self, graph: Graph) -> Graph:
        """The graph with its edges weighted."""
        return replace(graph, adjacency=self.adjacency)


_ESTIMATED: WeakKeyDictionary[Adjacency, dict[Hashable, Inclusion]] = (
    WeakKeyDictionary()
)
"""What was estimated before, as long as the rows live."""


def inclusion_of(graph: Graph, settings: Hashable, sample: Sampler) -> Inclusion:
    """The frequencies of a sampler with these settings, estimated once per graph."""
    known = _ESTIMATED.setdefault(graph.adjacency, {})
    if settings not in known:
        known[settings] = Inclusion.estimate(graph, sample)
    return known[settings]


@compiled()
def _count(
    starts: np.ndarray,
    columns: np.ndarray,
    ids: np.ndarray,
    of_nodes: np.ndarray,
    of_edges: np.ndarray,
) -> None:
    inside = np.zeros(len(of_nodes), np.bool_)
    inside[ids] = True
    of_nodes[ids] += 1
    for node in ids:
        for entry in range(starts[node], starts[node + 1]):
            of_edges[entry] += inside[columns[entry]]
