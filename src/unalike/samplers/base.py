"""`Sampler` and `Batch`: full batch, random parts, subgraphs, inference batches."""

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
from unalike.errors import lookup, require_positive
from unalike.options import check_options


@dataclass(frozen=True, eq=False)
class Batch:
    """Some nodes to train on."""

    graph: Graph
    """A subgraph; its `ids` are those of the full graph."""
    loss_weight: Float[Tensor, " nodes"]
    """Weight of each node in the loss; 0: not trained on."""
    counts_in_loss: bool = True
    """Whether this process trains on it; others compute it only to stay in step."""


LazyBatch = Callable[[], Batch]
"""A batch that is sampled, and built from the graph when it is called."""

MAX_GROUPED_NNZ = 2**22
"""Entries of subgraphs that are evaluated together."""


@dataclass(frozen=True, kw_only=True)
class Sampler(ABC):
    """Divides a graph into the batches of an epoch. Its fields are its options."""

    positive: ClassVar[tuple[str, ...]] = ()
    """Options that must be at least 1."""
    runs_on_gpu: ClassVar[bool] = False
    """Whether it can build batches of a graph on a GPU; otherwise they are copied."""

    def __post_init__(self) -> None:
        check_options(self)
        require_positive(self, *self.positive)

    @property
    def depends_on_train(self) -> bool:
        """Whether the train nodes determine the nodes of a batch, not only weights.

        Otherwise runs on different splits share their batches.
        """
        return False

    @property
    def sparse_optimizer(self) -> str:
        """The optimizer of sparse weights, a key of `SPARSE_OPTIMIZERS`."""
        return "adamw"

    def per_process(self, processes: int) -> Sampler:
        """The sampler of each of several data-parallel processes.

        Batches of nodes with their neighbours are divided. A subgraph is not: half of
        its nodes have a quarter of its edges, and networks learn less from that.
        """
        return self

    @abstractmethod
    def lazy_batches(
        self, graph: Graph, train: Ids, generator: torch.Generator
    ) -> Iterator[LazyBatch]:
        """The batches of one epoch, not built yet; each has a train node.

        The same state of the generator, which is on the CPU, gives the same batches,
        whichever of them are called.
        """

    def fixed_batches(self, graph: Graph, train: Ids) -> list[LazyBatch] | None:
        """The batches, if every epoch has the same ones in another order."""
        return None

    def epoch(
        self, graph: Graph, train: Ids, generator: torch.Generator
    ) -> Iterator[Batch]:
        return (batch() for batch in self.lazy_batches(graph, train, generator))

    def inference_batches(
        self, graph: Graph, generator: torch.Generator
    ) -> Iterator[Graph]:
        """Graphs for inference: every node is in exactly one of them."""
        yield graph


def shuffled(
    batches: Sequence[LazyBatch], generator: torch.Generator
) -> Iterator[LazyBatch]:
    """The same batches in random order."""
    order = torch.randperm(len(batches), generator=generator)
    return (batches[index] for index in order.tolist())


def train_mask(graph: Graph, train: Ids) -> Float[Tensor, " nodes"]:
    """1 for train nodes, 0 for all others."""
    mask = torch.zeros(graph.num_nodes, device=graph.labels.device)
    mask[train.to(mask.device)] = 1
    return mask


def split_train(order: Ids, size: int) -> Sequence[Ids]:
    """Train nodes in batches; a last one of a single node is merged with the previous.

    Batch norm has no statistics of a single node.
    """
    batches = list(order.split(size)) if len(order) else []
    if size > 1 and len(batches) > 1 and len(batches[-1]) == 1:
        batches[-2:] = [torch.cat(batches[-2:])]
    return batches


# Batches that are induced subgraphs.


def induced_batches(
    graph: Graph, parts: Iterable[Ids], weight: Float[Tensor, " nodes"]
) -> Iterator[LazyBatch]:
    """The induced subgraphs of sets of nodes, except those without a weight."""
    cache_symmetry(graph)
    for ids in parts:
        if weight[ids].any():
            yield partial(_induced_batch, graph, ids, weight)


def merge_single_nodes(parts: Iterable[Ids]) -> Iterator[Ids]:
    """Sets of nodes; one with a single node is merged with the next or the previous."""
    pending: list[Ids] = []
    for ids in parts:
        if pending and len(pending[-1]) == 1:
            pending[-1] = torch.cat([pending[-1], ids]).unique()
        else:
            pending.append(ids)
        if len(pending) > 2:
            yield pending.pop(0)
    if len(pending) == 2 and len(pending[1]) == 1:
        pending = [torch.cat(pending).unique()]
    yield from pending


def _induced_batch(graph: Graph, ids: Ids, weight: Float[Tensor, " nodes"]) -> Batch:
    return Batch(graph.subgraph(ids), weight[ids])


def induced_graphs(graph: Graph, parts: Iterable[Ids]) -> Iterator[Graph]:
    """The induced subgraphs of disjoint sets of nodes, as few graphs as fit in memory.

    Subgraphs in one graph have no edges between them, so each is as if it were alone.
    """
    cache_symmetry(graph)
    for group in group_parts(graph.adjacency, parts):
        ids, order = torch.cat(group).sort()
        sizes = torch.tensor([len(part) for part in group], device=ids.device)
        numbers = torch.arange(len(group), device=ids.device)
        yield graph.subgraph(ids, numbers.repeat_interleave(sizes)[order])


def group_parts(rows: Adjacency, parts: Iterable[Ids]) -> Iterator[list[Ids]]:
    """Groups of consecutive parts with a bounded nnz; empty parts are left out."""
    group: list[Ids] = []
    group_nnz = 0
    for ids in filter(len, parts):
        nnz = int(rows.global_degrees[ids].sum())
        if group and group_nnz + nnz > MAX_GROUPED_NNZ:
            yield group
            group, group_nnz = [], 0
        group.append(ids)
        group_nnz += nnz
    if group:
        yield group


def cache_symmetry(graph: Graph) -> None:
    """Check the symmetry of an undirected graph once; its subgraphs inherit it."""
    if not graph.directed:
        _ = graph.adjacency.is_symmetric


# Partitions of the nodes.


def partition_members(
    part_of_node: Int[Tensor, " nodes"], parts: int
) -> tuple[Ids, ...]:
    """The nodes of each part, in ascending order."""
    order = part_of_node.argsort(stable=True)
    return order.split(part_of_node.bincount(minlength=parts).tolist())


def random_partition(
    graph: Graph, parts: int, generator: torch.Generator
) -> tuple[Ids, ...]:
    """The nodes of each part, where every node is in a uniformly random part."""
    part_of_node = torch.randint(parts, (graph.num_nodes,), generator=generator)
    return partition_members(part_of_node.to(graph.labels.device), parts)


# Inference batches.


INFERENCE_PARTS = 10
"""Random parts in which the paper evaluates its large graphs."""

InferenceMode = Callable[[Graph, torch.Generator], Iterator[Graph]]


def ten_random_parts(graph: Graph, generator: torch.Generator) -> Iterator[Graph]:
    """Ten random parts: a node has about a tenth of its neighbours."""
    parts = random_partition(graph, INFERENCE_PARTS, generator)
    yield from induced_graphs(graph, parts)


class SubgraphSampler(Sampler):
    """A sampler of induced subgraphs with a choice of graphs for inference."""

    scoring: str

    def __post_init__(self) -> None:
        super().__post_init__()
        lookup(self.inference_modes, self.scoring, "scoring")

    @property
    def inference_modes(self) -> dict[str, InferenceMode]:
        """Graphs for inference by the value of the option `scoring`."""
        return {"graph": super().inference_batches, "parts": ten_random_parts}

    def inference_batches(
        self, graph: Graph, generator: torch.Generator
    ) -> Iterator[Graph]:
        return self.inference_modes[self.scoring](graph, generator)


@dataclass(frozen=True, kw_only=True)
class FullBatch(Sampler):
    """One batch: the graph itself."""

    def lazy_batches(
        self, graph: Graph, train: Ids, generator: torch.Generator
    ) -> Iterator[LazyBatch]:
        if len(train):
            yield partial(Batch, graph, train_mask(graph, train))


@dataclass(frozen=True, kw_only=True)
class PartitionSampler(SubgraphSampler):
    """Each batch is the subgraph of one part; edges between parts are lost."""

    scoring: Literal["graph", "batches", "parts"] = "graph"
    """Evaluate on the whole graph, on newly sampled batches, or on ten random parts."""

    @abstractmethod
    def partition_batches(
        self, graph: Graph, generator: torch.Generator
    ) -> Iterable[Ids]:
        """The distinct nodes of each batch; every node is in one batch."""

    def lazy_batches(
        self, graph: Graph, train: Ids, generator: torch.Generator
    ) -> Iterator[LazyBatch]:
        parts = self.partition_batches(graph, generator)
        return self.lazy_batches_of(graph, train, parts)

    def lazy_batches_of(
        self, graph: Graph, train: Ids, parts: Iterable[Ids]
    ) -> Iterator[LazyBatch]:
        """The batches of the parts that have a train node."""
        weight = train_mask(graph, train)
        with_train = (ids for ids in parts if weight[ids].any())
        return induced_batches(graph, merge_single_nodes(with_train), weight)

    @property
    def inference_modes(self) -> dict[str, InferenceMode]:
        return super().inference_modes | {"batches": self._own_batches}

    def _own_batches(self, graph: Graph, generator: torch.Generator) -> Iterator[Graph]:
        yield from induced_graphs(graph, self.partition_batches(graph, generator))


@dataclass(frozen=True, kw_only=True)
class RandomPartSampler(PartitionSampler):
    """Every node is in a uniformly random part in each epoch; a part is a batch."""

    positive = ("parts",)

    parts: int = 10
    """Parts of the graph."""

    def partition_batches(
        self, graph: Graph, generator: torch.Generator
    ) -> Iterable[Ids]:
        return random_partition(graph, self.parts, generator)
