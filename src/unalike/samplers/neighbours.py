"""GraphSAGE neighbour sampling with fan-out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import ceil

import numpy as np
import torch
from torch import Tensor

from unalike.data.adjacency import Adjacency, Ids
from unalike.data.graph import Graph
from unalike.data.numba_utils import njit
from unalike.errors import UserError, require_positive
from unalike.samplers.base import Batch, LazyBatch, Sampler


@dataclass(frozen=True, kw_only=True)
class NeighbourSampler(Sampler):
    """Every train node once an epoch, with random neighbours, layer by layer.

    A node gathers along the edges that enter it, so these are drawn, without repeats.
    A node that is reached again brings no further neighbours (GraphSAGE, Hamilton et
    al. 2017, https://arxiv.org/abs/1706.02216).
    """

    size: int = 1024
    """Train nodes in a batch."""
    fan_out: tuple[int, ...] = (10, 10)
    """Neighbours of a node at most: of the train nodes, of theirs, and so on."""

    def __post_init__(self) -> None:
        require_positive(self, "size")
        if not self.fan_out or min(self.fan_out) < 1:
            told = ", ".join(map(str, self.fan_out)) or "empty"
            raise UserError(f"fan_out is {told}; it needs numbers of at least 1.")

    @property
    def depends_on_train(self) -> bool:
        return True

    def per_process(self, processes: int) -> NeighbourSampler:
        return replace(self, size=ceil(self.size / processes))

    def lazy_batches(
        self, graph: Graph, train: Ids, chance: torch.Generator
    ) -> Iterator[LazyBatch]:
        entering = graph.adjacency.T.to("cpu")
        order = torch.randperm(len(train), generator=chance)
        for first in range(0, len(train), self.size):
            seeds = train.cpu()[order[first : first + self.size]]
            # Each batch has a chance of its own, so that one may be left out.
            draw = int(torch.randint(2**62, (1,), generator=chance))
            yield partial(self._cut, graph, entering, seeds, draw)

    def _cut(self, graph: Graph, entering: Adjacency, seeds: Ids, draw: int) -> Batch:
        chance = torch.Generator().manual_seed(draw)
        nodes, rows = self._sample_layers(entering, seeds, chance)
        return _batch(graph, nodes, rows, len(seeds))

    def _sample_layers(
        self, entering: Adjacency, seeds: Ids, chance: torch.Generator
    ) -> tuple[Ids, Adjacency]:
        """The nodes that are reached, seeds first, and the edges that led to them."""
        place = torch.full((entering.num_rows,), -1)
        place[seeds] = torch.arange(len(seeds))
        reached, picked, targets = [seeds], [], []
        for count in self.fan_out:
            nodes = reached[-1]
            entries, lengths = sample_entries(entering, nodes, count, chance)
            picked.append(entries)
            targets.append(nodes.repeat_interleave(lengths))
            sources = entering.indices[entries].long()
            fresh = sources[place[sources] < 0].unique()
            known = sum(map(len, reached))
            place[fresh] = torch.arange(known, known + len(fresh))
            reached.append(fresh)
        entry = torch.cat(picked)
        nodes = torch.cat(reached)
        rows = Adjacency.from_edges(
            place[entering.indices[entry].long()],
            place[torch.cat(targets)],
            shape=(len(nodes), len(nodes)),
            values=None if entering.values is None else entering.values[entry],
        )
        return nodes, rows


def _batch(graph: Graph, nodes: Ids, rows: Adjacency, seeds: int) -> Batch:
    """Nodes with the edges drawn among them; the leading ones are learned from."""
    nodes = nodes.to(graph.labels.device)
    drawn = replace(
        graph,
        adjacency=rows.to(nodes.device),
        features=graph.features[nodes],
        labels=graph.labels[nodes],
        node_ids=graph.ids[nodes],
        directed=True,
    )
    weight = torch.zeros(len(nodes), device=nodes.device)
    weight[:seeds] = 1
    return Batch(drawn, weight)


def sample_entries(
    rows: Adjacency, nodes: Ids, count: int, chance: torch.Generator
) -> tuple[Ids, Ids]:
    """Places of at most `count` random entries of each row, and how many they are."""
    degrees = rows.degrees[nodes]
    lengths = degrees.clamp(max=count)
    last = lengths.cumsum(0)
    shares = torch.rand(int(lengths.sum()), dtype=torch.float64, generator=chance)
    numbers: list[Tensor] = [rows.indptr[nodes], degrees, last - lengths, lengths]
    places = _pick(*(part.numpy() for part in (*numbers, shares)))
    return torch.from_numpy(places), lengths


@njit()
def _pick(
    starts: np.ndarray,
    degrees: np.ndarray,
    first: np.ndarray,
    lengths: np.ndarray,
    shares: np.ndarray,
) -> np.ndarray:
    """Floyd's draw without repeats: it never looks at entries it does not take."""
    places = np.empty(len(shares), np.int64)
    for node in range(len(starts)):
        begin = first[node]
        for taken in range(lengths[node]):
            newest = degrees[node] - lengths[node] + taken
            drawn = np.int64(shares[begin + taken] * (newest + 1))
            place = starts[node] + drawn
            for earlier in range(begin, begin + taken):
                if places[earlier] == place:
                    place = starts[node] + newest
                    break
            places[begin + taken] = place
    return places
