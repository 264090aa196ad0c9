"""Batching: how to cut a graph into pieces to learn from and to score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from unalike.adjacency import Adjacency, Ids
from unalike.graph import Graph


@dataclass(frozen=True, eq=False)
class Batch:
    """Some nodes to learn from."""

    graph: Graph
    """A subgraph; its ids are places in the graph it was cut from."""
    weight: Float[Tensor, " nodes"]
    """What each node counts for in the loss; 0: not learned from."""
    counts: bool = True
    """Is this the process that learns from it? Others may work on it to keep step."""


Cut = Callable[[], Batch]
"""A batch that is drawn, and cut out of the graph when it is called for."""

SIDE_BY_SIDE = 2**22
"""Entries that the rows of pieces which are scored at once may have."""


@dataclass(frozen=True, kw_only=True)
class Batching(ABC):
    """How to cut a graph into the batches of an epoch. Its fields are its settings."""

    cuts_anywhere: ClassVar[bool] = False
    """Can it cut a graph that lies on a card? Otherwise batches are carried there."""

    @property
    def looks_at_train(self) -> bool:
        """Do train nodes decide which nodes a batch has, and not only their weights?

        Runs on different splits have the same batches where they do not.
        """
        return False

    @property
    def mover(self) -> str:
        """How tables move, by a name of `training.tables`."""
        return "adamw"

    def share(self, processes: int) -> Batching:
        """The batching of processes that learn from a batch each in every step.

        Nodes that bring their own surroundings are divided. A subgraph is not: a half
        of it has a quarter of its edges, and nets learn less from that.
        """
        return self

    @abstractmethod
    def drawn(self, graph: Graph, train: Ids, chance: torch.Generator) -> Iterator[Cut]:
        """The batches of one epoch, yet to be cut; each has a node to learn from.

        The same state of `chance`, a generator on the CPU, gives the same batches,
        whichever of them are called for.
        """

    def standing(self, graph: Graph, train: Ids) -> list[Cut] | None:
        """The batches, where every epoch has the same in another order."""
        return None

    def epoch(
        self, graph: Graph, train: Ids, chance: torch.Generator
    ) -> Iterator[Batch]:
        """The batches of one epoch."""
        return (cut() for cut in self.drawn(graph, train, chance))

    def cover(self, graph: Graph, chance: torch.Generator) -> Iterator[Graph]:
        """Graphs to score: every node is in exactly one of them."""
        yield graph


def shuffled(cuts: Sequence[Cut], chance: torch.Generator) -> Iterator[Cut]:
    """The same batches in an order of chance."""
    order = torch.randperm(len(cuts), generator=chance)
    return (cuts[place] for place in order.tolist())


def weight_of_train(graph: Graph, train: Ids) -> Float[Tensor, " nodes"]:
    """1 on the nodes to learn from, 0 on all others."""
    weight = torch.zeros(graph.num_nodes, device=graph.labels.device)
    weight[train.to(weight.device)] = 1
    return weight


def induced_graphs(graph: Graph, pieces: Iterable[Ids]) -> Iterator[Graph]:
    """The subgraphs that pieces induce, as many side by side as fit into one graph.

    No edge leads from one to another, so each is scored as if it were alone.
    """
    learn_symmetry(graph)
    for group in _groups(graph.adjacency, pieces):
        ids, order = torch.cat(group).sort()
        sizes = torch.tensor([len(piece) for piece in group], device=ids.device)
        numbers = torch.arange(len(group), device=ids.device)
        yield graph.induced(ids, numbers.repeat_interleave(sizes)[order])


def _groups(rows: Adjacency, pieces: Iterable[Ids]) -> Iterator[list[Ids]]:
    """Pieces that have so many entries together; empty pieces are left out."""
    group: list[Ids] = []
    held = 0
    for ids in filter(len, pieces):
        entries = int(rows.loads[ids].sum())
        if group and held + entries > SIDE_BY_SIDE:
            yield group
            group, held = [], 0
        group.append(ids)
        held += entries
    if group:
        yield group


def induced_batches(
    graph: Graph, pieces: Iterable[Ids], weight: Float[Tensor, " nodes"]
) -> Iterator[Cut]:
    """The subgraphs that pieces induce, where there is something to learn."""
    learn_symmetry(graph)
    for ids in pieces:
        if weight[ids].any():
            yield partial(_induced_batch, graph, ids, weight)


def _induced_batch(graph: Graph, ids: Ids, weight: Float[Tensor, " nodes"]) -> Batch:
    return Batch(graph.induced(ids), weight[ids])


def learn_symmetry(graph: Graph) -> None:
    """Find out once if edges are mirrored, so that no piece needs to be transposed."""
    if not graph.directed:
        _ = graph.adjacency.is_symmetric
