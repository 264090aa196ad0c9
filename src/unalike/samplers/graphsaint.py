"""GraphSAINT node, edge and random-walk samplers, with their normalisation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from unalike.data.adjacency import Adjacency, Ids
from unalike.data.graph import Graph
from unalike.data.numba_utils import njit
from unalike.errors import UserError
from unalike.samplers.base import (
    LazyBatch,
    SubgraphSampler,
    induced_batches,
    train_mask,
)

# Random edges and random walks.


def random_ids(size: int, count: int, generator: torch.Generator) -> Ids:
    """`count` uniform integers below `size`; none if `size` is 0."""
    return torch.randint(max(1, size), (count if size else 0,), generator=generator)


def random_walk_step(
    rows: Adjacency, nodes: Int[Tensor, " walks"], generator: torch.Generator
) -> Int[Tensor, " walks"]:
    """A random neighbour of each node; a node without neighbours stays."""
    uniform = torch.rand(len(nodes), dtype=torch.float64, generator=generator)
    degrees = rows.degrees[nodes]
    moves = degrees > 0
    entries = rows.indptr[nodes] + (uniform.to(nodes.device) * degrees).long()
    following = nodes.clone()
    following[moves] = rows.indices[entries[moves]].to(nodes.dtype)
    return following


def require_edges(rows: Adjacency) -> None:
    """Refuse a graph without edges, which cannot be sampled by edges."""
    if not rows.nnz:
        raise UserError("The graph has no edges, and these batches sample edges.")


# Normalisation.


MIN_DRAWS_PER_NODE = 50
"""Mean number of samples of a node from which its frequency is estimated."""

SampleNodes = Callable[[Graph, torch.Generator], Ids]


@dataclass(frozen=True, eq=False)
class SamplingNorm:
    """Loss and edge weights with which subgraphs estimate the full graph unbiasedly.

    Of N subgraphs, C(v) contain node v and C(u, v) the edge from u to v. The loss of v
    has the weight N / C(v), and the message from u to v the weight C(v) / C(u, v). A
    count of 0 is taken for 1 (Zeng et al. 2020, section 3.2).
    """

    loss_weight: Float[Tensor, " nodes"]
    adjacency: Adjacency

    @classmethod
    def estimate(cls, graph: Graph, sample: SampleNodes) -> SamplingNorm:
        """Estimate from subgraphs that are sampled with a fixed seed."""
        rows = graph.adjacency.to("cpu")
        indptr, indices = rows.indptr.numpy(), rows.indices.numpy()
        node_counts = np.zeros(graph.num_nodes, np.int32)
        edge_counts = np.zeros(rows.nnz, np.int32)
        inside = np.zeros(graph.num_nodes, np.bool_)
        generator, nodes, samples = torch.Generator().manual_seed(0), 0, 0
        while nodes < MIN_DRAWS_PER_NODE * graph.num_nodes:
            ids = sample(graph, generator).cpu().numpy()
            _count_sample(indptr, indices, ids, inside, node_counts, edge_counts)
            nodes, samples = nodes + max(1, len(ids)), samples + 1
        node_count = torch.from_numpy(node_counts).clamp(min=1).float()
        edge_count = torch.from_numpy(edge_counts).clamp(min=1).float()
        values = node_count[rows.indices.long()] / edge_count
        if rows.values is not None:
            values = values * rows.values
        weighted = Adjacency(rows.indptr, rows.indices, rows.num_cols, values)
        device = graph.labels.device
        return cls((samples / node_count).to(device), weighted.to(device))


@njit()
def _count_sample(
    indptr: np.ndarray,
    indices: np.ndarray,
    ids: np.ndarray,
    inside: np.ndarray,
    node_counts: np.ndarray,
    edge_counts: np.ndarray,
) -> None:
    """Count the nodes and edges of one subgraph; `inside` is False before and after."""
    inside[ids] = True
    node_counts[ids] += 1
    for node in ids:
        for entry in range(indptr[node], indptr[node + 1]):
            edge_counts[entry] += inside[indices[entry]]
    inside[ids] = False


# Samplers.


@dataclass(frozen=True, kw_only=True)
class GraphSAINTSampler(SubgraphSampler):
    """Independently sampled subgraphs in every epoch.

    Zeng et al. 2020, https://arxiv.org/abs/1907.04931.
    """

    positive: ClassVar[tuple[str, ...]] = ("steps",)

    steps: int = 5
    """Batches in an epoch."""
    normalised: bool = False
    """Correct for nodes and edges that are sampled more often than others."""
    scoring: Literal["graph", "parts"] = "graph"
    """Evaluate on the whole graph, or on ten random parts."""

    @abstractmethod
    def sample_nodes(self, graph: Graph, generator: torch.Generator) -> Ids:
        """The nodes of one subgraph, possibly repeated."""

    def lazy_batches(
        self, graph: Graph, train: Ids, generator: torch.Generator
    ) -> Iterator[LazyBatch]:
        weight = train_mask(graph, train)
        if self.normalised:
            norm = self.sampling_norm(graph)
            graph = replace(graph, adjacency=norm.adjacency)
            weight = weight * norm.loss_weight
        samples = (self._sample(graph, generator) for _ in range(self.steps))
        yield from induced_batches(graph, samples, weight)

    def sampling_norm(self, graph: Graph) -> SamplingNorm:
        """The normalisation, estimated once per graph."""
        cache = graph.adjacency.cache
        if self not in cache:
            cache[self] = SamplingNorm.estimate(graph, self._sample)
        norm: SamplingNorm = cache[self]
        return norm

    def _sample(self, graph: Graph, generator: torch.Generator) -> Ids:
        return self.sample_nodes(graph, generator).unique()


@dataclass(frozen=True, kw_only=True)
class GraphSAINTEdgeSampler(GraphSAINTSampler):
    """An edge from u to v is sampled in proportion to 1 / deg u + 1 / deg v.

    deg u counts the edges that leave u, and deg v those that enter v. A random edge of
    a random node has a probability in proportion to 1 / deg, so that no table of all
    edges is needed.
    """

    positive = ("steps", "budget")

    budget: int = 5000
    """Edges sampled for a batch; repeated ones count once."""

    def sample_nodes(self, graph: Graph, generator: torch.Generator) -> Ids:
        require_edges(graph.adjacency)
        adjacency, adjacency_t = graph.adjacency, graph.adjacency.T
        sources, targets = adjacency.nonempty_rows, adjacency_t.nonempty_rows
        ends = random_ids(len(sources) + len(targets), self.budget, generator)
        ends = ends.to(sources.device)
        first = sources[ends[ends < len(sources)]]
        last = targets[ends[ends >= len(sources)] - len(sources)]
        others = (
            random_walk_step(adjacency, first, generator),
            random_walk_step(adjacency_t, last, generator),
        )
        return torch.cat([first, last, *others])


@dataclass(frozen=True, kw_only=True)
class GraphSAINTNodeSampler(GraphSAINTSampler):
    """A node is sampled in proportion to its out-degree."""

    positive = ("steps", "budget")

    budget: int = 5000
    """Nodes sampled for a batch; repeated ones count once."""

    def sample_nodes(self, graph: Graph, generator: torch.Generator) -> Ids:
        rows = graph.adjacency
        require_edges(rows)
        edges = random_ids(rows.nnz, self.budget, generator).to(rows.indices.device)
        return torch.searchsorted(rows.indptr, edges, right=True) - 1


@dataclass(frozen=True, kw_only=True)
class GraphSAINTRandomWalkSampler(GraphSAINTSampler):
    """All nodes on random walks from random roots; a walk stays at a sink."""

    positive = ("steps", "roots", "length")

    roots: int = 5000
    """Random walks for a batch; two may have the same root."""
    length: int = 2
    """Steps of a walk; the paper takes the number of layers of the network."""

    def sample_nodes(self, graph: Graph, generator: torch.Generator) -> Ids:
        roots = random_ids(graph.num_nodes, self.roots, generator)
        visited = [roots.to(graph.labels.device)]
        for _ in range(self.length):
            visited.append(random_walk_step(graph.adjacency, visited[-1], generator))
        return torch.cat(visited)
