"""GraphSAINT node, edge and random-walk samplers, and their normalisation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from unalike.data.adjacency import Adjacency, Ids
from unalike.data.graph import Graph
from unalike.data.numba_utils import njit
from unalike.errors import UserError, lookup, require_positive
from unalike.samplers.base import (
    INFERENCE_MODES,
    LazyBatch,
    Sampler,
    induced_batches,
    train_mask,
)

# Draws: random entries of sparse rows, and random steps along them.


def random_ids(size: int, count: int, chance: torch.Generator) -> Ids:
    """Numbers below `size`, each as likely as any other; none if there are none."""
    return torch.randint(max(1, size), (count if size else 0,), generator=chance)


def random_edges(rows: Adjacency, count: int, chance: torch.Generator) -> Ids:
    """Places of random entries."""
    require_edges(rows)
    return random_ids(rows.nnz, count, chance).to(rows.indices.device)


def edge_sources(rows: Adjacency, places: Ids) -> Ids:
    """The rows in which entries stand."""
    return torch.searchsorted(rows.indptr, places, right=True) - 1


def random_walk_step(
    rows: Adjacency, nodes: Int[Tensor, " walks"], chance: torch.Generator
) -> Int[Tensor, " walks"]:
    """A random neighbour of each node; a node without any stays where it is."""
    share = torch.rand(len(nodes), dtype=torch.float64, generator=chance)
    degrees = rows.degrees[nodes]
    moves = degrees > 0
    places = rows.indptr[nodes] + (share.to(nodes.device) * degrees).long()
    reached = nodes.clone()
    reached[moves] = rows.indices[places[moves]].to(nodes.dtype)
    return reached


def require_edges(rows: Adjacency) -> None:
    """Refuse a graph without edges, from which none can be drawn."""
    if not rows.nnz:
        raise UserError("The graph has no edges, and these batches draw edges.")


# Inclusion: how often a sampler takes each node and edge, and what makes up for it.


MIN_DRAWS_PER_NODE = 50
"""Times that an average node is drawn before its frequency is trusted."""

SampleNodes = Callable[[Graph, torch.Generator], Ids]


@dataclass(frozen=True, eq=False)
class SamplingNorm:
    """Weights that make an average over subgraphs that of the graph.

    Of N subgraphs, C(v) hold node v and C(u, v) hold the edge from u to v. The loss of
    v counts N / C(v) times, and what v gathers from u counts C(v) / C(u, v) times.
    What was never seen counts as seen once (Zeng et al. 2020, section 3.2).
    """

    loss_weight: Float[Tensor, " nodes"]
    adjacency: Adjacency

    @classmethod
    def estimate(cls, graph: Graph, sample: SampleNodes) -> SamplingNorm:
        """Frequencies in subgraphs drawn from a seed of their own."""
        rows = graph.adjacency.to("cpu")
        starts, columns = rows.indptr.numpy(), rows.indices.numpy()
        of_nodes = np.zeros(graph.num_nodes, np.int32)
        of_edges = np.zeros(rows.nnz, np.int32)
        chance, drawn, samples = torch.Generator().manual_seed(0), 0, 0
        while drawn < MIN_DRAWS_PER_NODE * graph.num_nodes:
            ids = sample(graph, chance).cpu().numpy()
            _count(starts, columns, ids, of_nodes, of_edges)
            drawn, samples = drawn + max(1, len(ids)), samples + 1
        node_count = torch.from_numpy(of_nodes).clamp(min=1).float()
        edge_count = torch.from_numpy(of_edges).clamp(min=1).float()
        values = node_count[rows.indices.long()] / edge_count
        if rows.values is not None:
            values = values * rows.values
        weighted = Adjacency(rows.indptr, rows.indices, rows.num_cols, values)
        device = graph.labels.device
        return cls((samples / node_count).to(device), weighted.to(device))

    def reweight(self, graph: Graph) -> Graph:
        """The graph with its edges weighted."""
        return replace(graph, adjacency=self.adjacency)


_ESTIMATED: WeakKeyDictionary[Adjacency, dict[Hashable, SamplingNorm]] = (
    WeakKeyDictionary()
)
"""What was estimated before, as long as the rows live."""


def sampling_norm(
    graph: Graph, settings: Hashable, sample: SampleNodes
) -> SamplingNorm:
    """The frequencies of a sampler with these settings, estimated once per graph."""
    known = _ESTIMATED.setdefault(graph.adjacency, {})
    if settings not in known:
        known[settings] = SamplingNorm.estimate(graph, sample)
    return known[settings]


@njit()
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


# GraphSAINT: batches are subgraphs induced by nodes that a sampler draws.


@dataclass(frozen=True, kw_only=True)
class GraphSAINTSampler(Sampler):
    """Some subgraphs in every epoch, each drawn by itself.

    Zeng et al. 2020, https://arxiv.org/abs/1907.04931.
    """

    steps: int = 5
    """Batches in an epoch."""
    normalised: bool = False
    """Make up for nodes and edges that are drawn more often than others."""
    scoring: Literal["graph", "parts"] = "graph"
    """Score on the whole graph, or on ten random parts."""

    def __post_init__(self) -> None:
        lookup(INFERENCE_MODES, self.scoring, "scoring")
        require_positive(self, "steps")

    @abstractmethod
    def sample_nodes(self, graph: Graph, chance: torch.Generator) -> Ids:
        """The nodes of one subgraph, with repeats."""

    def lazy_batches(
        self, graph: Graph, train: Ids, chance: torch.Generator
    ) -> Iterator[LazyBatch]:
        weight = train_mask(graph, train)
        if self.normalised:
            seen = self._inclusion(graph)
            graph, weight = seen.reweight(graph), weight * seen.loss_weight
        samples = (self._sample(graph, chance) for _ in range(self.steps))
        yield from induced_batches(graph, samples, weight)

    def inference_batches(
        self, graph: Graph, chance: torch.Generator
    ) -> Iterator[Graph]:
        yield from INFERENCE_MODES[self.scoring](graph, chance)

    def _sample(self, graph: Graph, chance: torch.Generator) -> Ids:
        return self.sample_nodes(graph, chance).unique()

    def _inclusion(self, graph: Graph) -> SamplingNorm:
        return sampling_norm(graph, self, self._sample)


# GraphSAINT by edges: both ends of edges, those of low degree more often.


@dataclass(frozen=True, kw_only=True)
class GraphSAINTEdgeSampler(GraphSAINTSampler):
    """An edge from u to v is drawn in proportion to 1 / deg u + 1 / deg v.

    These are the edges that leave u and those that enter v. Any edge of a random node
    is drawn in proportion to 1 / deg, so no table of all edges is needed.
    """

    budget: int = 5000
    """Edges drawn for a batch; one that is drawn again counts once."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "budget")

    def sample_nodes(self, graph: Graph, chance: torch.Generator) -> Ids:
        require_edges(graph.adjacency)
        leaving, entering = graph.adjacency, graph.adjacency.T
        sources, targets = _with_edges(leaving), _with_edges(entering)
        ends = random_ids(len(sources) + len(targets), self.budget, chance)
        ends = ends.to(sources.device)
        first = sources[ends[ends < len(sources)]]
        last = targets[ends[ends >= len(sources)] - len(sources)]
        others = (
            random_walk_step(leaving, first, chance),
            random_walk_step(entering, last, chance),
        )
        return torch.cat([first, last, *others])


def _with_edges(rows: Adjacency) -> Ids:
    return rows.degrees.nonzero()[:, 0]


# GraphSAINT by nodes: the sources of edges drawn at random.


@dataclass(frozen=True, kw_only=True)
class GraphSAINTNodeSampler(GraphSAINTSampler):
    """A node is drawn as often as it points at others; one that never does, never."""

    budget: int = 5000
    """Draws for a batch; a node that is drawn again counts once."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "budget")

    def sample_nodes(self, graph: Graph, chance: torch.Generator) -> Ids:
        return edge_sources(
            graph.adjacency, random_edges(graph.adjacency, self.budget, chance)
        )


# GraphSAINT by walks: all nodes on short random walks.


@dataclass(frozen=True, kw_only=True)
class GraphSAINTRandomWalkSampler(GraphSAINTSampler):
    """Walks start at any node alike and follow edges; where none leaves, they stay."""

    roots: int = 5000
    """Walks for a batch; two may start at one node."""
    length: int = 2
    """Steps of a walk; the paper takes as many as the network has layers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "roots", "length")

    def sample_nodes(self, graph: Graph, chance: torch.Generator) -> Ids:
        roots = random_ids(graph.num_nodes, self.roots, chance)
        visited = [roots.to(graph.labels.device)]
        for _ in range(self.length):
            visited.append(random_walk_step(graph.adjacency, visited[-1], chance))
        return torch.cat(visited)
