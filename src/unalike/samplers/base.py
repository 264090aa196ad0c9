"""`Batch`, `Sampler`, full batch, partition sampler base, induced subgraph batches, inference batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from unalike.data.adjacency import Adjacency, Ids
from unalike.data.graph import Graph
from unalike.errors import lookup

# Batching: how to cut a graph into pieces to learn from and to score.


@dataclass(frozen=True, eq=False)
class Batch:
    """Some nodes to learn from."""

    graph: Graph
    """A subgraph; its ids are places in the graph it was cut from."""
    loss_weight: Float[Tensor, " nodes"]
    """What each node counts for in the loss; 0: not learned from."""
    counts_in_loss: bool = True
    """Is this the process that learns from it? Others may work on it to keep step."""


LazyBatch = Callable[[], Batch]
"""A batch that is drawn, and cut out of the graph when it is called for."""

MAX_GROUPED_NNZ = 2**22
"""Entries that the rows of pieces which are scored at once may have."""


@dataclass(frozen=True, kw_only=True)
class Sampler(ABC):
    """How to cut a graph into the batches of an epoch. Its fields are its settings."""

    runs_on_gpu: ClassVar[bool] = False
    """Can it cut a graph that lies on a card? Otherwise batches are carried there."""

    @property
    def depends_on_train(self) -> bool:
        """Do train nodes decide which nodes a batch has, and not only their weights?

        Runs on different splits have the same batches where they do not.
        """
        return False

    @property
    def sparse_optimizer(self) -> str:
        """How tables move, by a name of `training.tables`."""
        return "adamw"

    def per_process(self, processes: int) -> Sampler:
        """The batching of processes that learn from a batch each in every step.

        Nodes that bring their own surroundings are divided. A subgraph is not: a half
        of it has a quarter of its edges, and nets learn less from that.
        """
        return self

    @abstractmethod
    def lazy_batches(
        self, graph: Graph, train: Ids, chance: torch.Generator
    ) -> Iterator[LazyBatch]:
        """The batches of one epoch, yet to be cut; each has a node to learn from.

        The same state of `chance`, a generator on the CPU, gives the same batches,
        whichever of them are called for.
        """

    def fixed_batches(self, graph: Graph, train: Ids) -> list[LazyBatch] | None:
        """The batches, where every epoch has the same in another order."""
        return None

    def epoch(
        self, graph: Graph, train: Ids, chance: torch.Generator
    ) -> Iterator[Batch]:
        """The batches of one epoch."""
        return (cut() for cut in self.lazy_batches(graph, train, chance))

    def inference_batches(
        self, graph: Graph, chance: torch.Generator
    ) -> Iterator[Graph]:
        """Graphs to score: every node is in exactly one of them."""
        yield graph


def shuffled(cuts: Sequence[LazyBatch], chance: torch.Generator) -> Iterator[LazyBatch]:
    """The same batches in an order of chance."""
    order = torch.randperm(len(cuts), generator=chance)
    return (cuts[place] for place in order.tolist())


def train_mask(graph: Graph, train: Ids) -> Float[Tensor, " nodes"]:
    """1 on the nodes to learn from, 0 on all others."""
    weight = torch.zeros(graph.num_nodes, device=graph.labels.device)
    weight[train.to(weight.device)] = 1
    return weight


def induced_graphs(graph: Graph, pieces: Iterable[Ids]) -> Iterator[Graph]:
    """The subgraphs that pieces induce, as many side by side as fit into one graph.

    No edge leads from one to another, so each is scored as if it were alone.
    """
    cache_symmetry(graph)
    for group in group_pieces(graph.adjacency, pieces):
        ids, order = torch.cat(group).sort()
        sizes = torch.tensor([len(piece) for piece in group], device=ids.device)
        numbers = torch.arange(len(group), device=ids.device)
        yield graph.subgraph(ids, numbers.repeat_interleave(sizes)[order])


def group_pieces(rows: Adjacency, pieces: Iterable[Ids]) -> Iterator[list[Ids]]:
    """Pieces that have so many entries together; empty pieces are left out."""
    group: list[Ids] = []
    held = 0
    for ids in filter(len, pieces):
        entries = int(rows.global_degrees[ids].sum())
        if group and held + entries > MAX_GROUPED_NNZ:
            yield group
            group, held = [], 0
        group.append(ids)
        held += entries
    if group:
        yield group


def induced_batches(
    graph: Graph, pieces: Iterable[Ids], weight: Float[Tensor, " nodes"]
) -> Iterator[LazyBatch]:
    """The subgraphs that pieces induce, where there is something to learn."""
    cache_symmetry(graph)
    for ids in pieces:
        if weight[ids].any():
            yield partial(_induced_batch, graph, ids, weight)


def _induced_batch(graph: Graph, ids: Ids, weight: Float[Tensor, " nodes"]) -> Batch:
    return Batch(graph.subgraph(ids), weight[ids])


def cache_symmetry(graph: Graph) -> None:
    """Find out once if edges are mirrored, so that no piece needs to be transposed."""
    if not graph.directed:
        _ = graph.adjacency.is_symmetric


# Dealing: nodes handed out to parts, each node to one part.


def partition_members(
    part_of_node: Int[Tensor, " nodes"], parts: int
) -> tuple[Ids, ...]:
    """The nodes of each part, in ascending order."""
    order = part_of_node.argsort(stable=True)
    return order.split(part_of_node.bincount(minlength=parts).tolist())


def random_partition(
    graph: Graph, parts: int, chance: torch.Generator
) -> tuple[Ids, ...]:
    """The nodes of parts, where every node falls into any part alike."""
    drawn = torch.randint(parts, (graph.num_nodes,), generator=chance)
    return partition_members(drawn.to(graph.labels.device), parts)


# Full: the whole graph is the only batch.


@dataclass(frozen=True, kw_only=True)
class FullBatch(Sampler):
    """One batch: the graph itself."""

    def lazy_batches(
        self, graph: Graph, train: Ids, chance: torch.Generator
    ) -> Iterator[LazyBatch]:
        if len(train):
            yield partial(Batch, graph, train_mask(graph, train))


# Scoring: the pieces in which every node is scored once.


INFERENCE_PARTS = 10
"""Parts in which the paper scores its large graphs."""

InferenceMode = Callable[[Graph, torch.Generator], Iterator[Graph]]


def whole_graph(graph: Graph, chance: torch.Generator) -> Iterator[Graph]:
    """The graph itself: every node sees all its neighbours."""
    yield graph


def ten_random_parts(graph: Graph, chance: torch.Generator) -> Iterator[Graph]:
    """Ten random parts: a node sees about a tenth of its neighbours."""
    yield from induced_graphs(graph, random_partition(graph, INFERENCE_PARTS, chance))


INFERENCE_MODES: dict[str, InferenceMode] = {
    "graph": whole_graph,
    "parts": ten_random_parts,
}

# Pieces: batchings that cut a graph apart, so that each node is in one batch.


@dataclass(frozen=True, kw_only=True)
class PartitionSampler(Sampler):
    """Each piece is the subgraph its nodes induce; edges between pieces are lost."""

    scoring: Literal["graph", "batches", "parts"] = "graph"
    """Score on the whole graph, on pieces drawn anew, or on ten random parts."""

    def __post_init__(self) -> None:
        lookup(self._inference_modes, self.scoring, "scoring")

    @abstractmethod
    def partition_batches(self, graph: Graph, chance: torch.Generator) -> Iterable[Ids]:
        """Distinct nodes of each piece; all pieces together hold every node once."""

    def lazy_batches(
        self, graph: Graph, train: Ids, chance: torch.Generator
    ) -> Iterator[LazyBatch]:
        return self.lazy_batches_of(graph, train, self.partition_batches(graph, chance))

    def lazy_batches_of(
        self, graph: Graph, train: Ids, pieces: Iterable[Ids]
    ) -> Iterator[LazyBatch]:
        """The batches that pieces are, where there is something to learn."""
        return induced_batches(graph, pieces, train_mask(graph, train))

    def inference_batches(
        self, graph: Graph, chance: torch.Generator
    ) -> Iterator[Graph]:
        yield from self._inference_modes[self.scoring](graph, chance)

    @property
    def _inference_modes(self) -> dict[str, InferenceMode]:
        return INFERENCE_MODES | {"batches": self._own_pieces}

    def _own_pieces(self, graph: Graph, chance: torch.Generator) -> Iterator[Graph]:
        yield from induced_graphs(graph, self.partition_batches(graph, chance))
