"""GraphSAGE sampler: random neighbours of train nodes with a fan-out per layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import ceil

import numpy as np
import torch
from torch import Tensor

from unalike.data.adjacency import Adjacency, Ids
from unalike.data.csr import new_ids
from unalike.data.graph import Graph
from unalike.data.numba_utils import njit
from unalike.errors import UserError
from unalike.samplers.base import Batch, LazyBatch, Sampler, split_train


@dataclass(frozen=True, kw_only=True)
class NeighbourSampler(Sampler):
    """Every train node once an epoch, with random neighbours, layer by layer.

    A node aggregates along the edges that enter it, so these are sampled, without
    replacement. A node that is sampled again adds no further neighbours (GraphSAGE,
    Hamilton et al. 2017, https://arxiv.org/abs/1706.02216).
    """

    positive = ("size",)

    size: int = 1024
    """Train nodes in a batch."""
    fan_out: tuple[int, ...] = (10, 10)
    """Maximal number of neighbours of a node in each layer, from the train nodes on."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.fan_out or min(self.fan_out) < 1:
            text = ", ".join(map(str, self.fan_out)) or "empty"
            raise UserError(f"fan_out is {text}; it needs numbers of at least 1.")

    @property
    def depends_on_train(self) -> bool:
        return True

    def per_process(self, processes: int) -> NeighbourSampler:
        return replace(self, size=ceil(self.size / processes))

    def lazy_batches(
        self, graph: Graph, train: Ids, generator: torch.Generator
    ) -> Iterator[LazyBatch]:
        adjacency_t = graph.adjacency.T.to("cpu")
        order = torch.randperm(len(train), generator=generator)
        for part in split_train(order, self.size):
            seeds = train.cpu()[part]
            # Each batch has a seed of its own, so that any of them can be skipped.
            seed = int(torch.randint(2**62, (1,), generator=generator))
            yield partial(self._sample_batch, graph, adjacency_t, seeds, seed)

    def _sample_batch(
        self, graph: Graph, adjacency_t: Adjacency, seeds: Ids, seed: int
    ) -> Batch:
        generator = torch.Generator().manual_seed(seed)
        nodes, rows = self._sample_layers(adjacency_t, seeds, generator)
        nodes = nodes.to(graph.labels.device)
        sampled = graph.with_rows(nodes, rows.to(nodes.device))
        weight = torch.zeros(len(nodes), device=nodes.device)
        weight[: len(seeds)] = 1
        return Batch(replace(sampled, directed=True), weight)

    def _sample_layers(
        self, adjacency_t: Adjacency, seeds: Ids, generator: torch.Generator
    ) -> tuple[Ids, Adjacency]:
        """The sampled nodes, seeds first, and the sampled edges between them."""
        layers, sampled, targets = [seeds], [], []
        with new_ids(adjacency_t) as new_id:
            new_id[seeds] = torch.arange(len(seeds), dtype=new_id.dtype)
            for count in self.fan_out:
                nodes = layers[-1]
                entries, lengths = sample_entries(adjacency_t, nodes, count, generator)
                sampled.append(entries)
                targets.append(nodes.repeat_interleave(lengths))
                sources = adjacency_t.indices[entries].long()
                added = sources[new_id[sources] < 0].unique()
                size = sum(map(len, layers))
                numbers = torch.arange(size, size + len(added), dtype=new_id.dtype)
                new_id[added] = numbers
                layers.append(added)
            entry, nodes = torch.cat(sampled), torch.cat(layers)
            source = new_id[adjacency_t.indices[entry].long()]
            target = new_id[torch.cat(targets)]
            new_id[nodes] = -1
        rows = Adjacency.from_edges(
            source,
            target,
            shape=(len(nodes), len(nodes)),
            values=None if adjacency_t.values is None else adjacency_t.values[entry],
        )
        return nodes, rows


def sample_entries(
    rows: Adjacency, nodes: Ids, count: int, generator: torch.Generator
) -> tuple[Ids, Ids]:
    """Positions of at most `count` random entries of each row, and their number."""
    degrees = rows.degrees[nodes]
    lengths = degrees.clamp(max=count)
    last = lengths.cumsum(0)
    uniform = torch.rand(int(lengths.sum()), dtype=torch.float64, generator=generator)
    arrays: list[Tensor] = [rows.indptr[nodes], degrees, last - lengths, lengths]
    positions = _sample_without_replacement(*(a.numpy() for a in (*arrays, uniform)))
    return torch.from_numpy(positions), lengths


@njit()
def _sample_without_replacement(
    starts: np.ndarray,
    degrees: np.ndarray,
    first: np.ndarray,
    lengths: np.ndarray,
    uniform: np.ndarray,
) -> np.ndarray:
    """Floyd's algorithm, which touches only the entries that it samples."""
    positions = np.empty(len(uniform), np.int64)
    for node in range(len(starts)):
        begin = first[node]
        for count in range(lengths[node]):
            newest = degrees[node] - lengths[node] + count
            position = starts[node] + np.int64(uniform[begin + count] * (newest + 1))
            for earlier in range(begin, begin + count):
                if positions[earlier] == position:
                    position = starts[node] + newest
                    break
            positions[begin + count] = position
    return positions
