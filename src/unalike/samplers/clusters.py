"""Cluster-GCN sampler: METIS partition, cached on disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from unalike.data.adjacency import Adjacency, Ids
from unalike.data.graph import Graph
from unalike.errors import UserError, require
from unalike.files import atomic_write, file_lock
from unalike.samplers.base import (
    LazyBatch,
    PartitionSampler,
    partition_members,
    shuffled,
)
from unalike.system import cache_dir, data_root, is_writable


@dataclass(frozen=True, kw_only=True)
class ClusterSampler(PartitionSampler):
    """A batch is a group of METIS clusters with the edges between them.

    The clusters stay the same; each epoch groups them anew (Cluster-GCN, Chiang et al.
    2019, https://arxiv.org/abs/1905.07953). With one cluster per batch, every epoch has
    the same batches.
    """

    positive = ("parts", "at_once")

    parts: int = 200
    """Clusters of the graph."""
    at_once: int = 1
    """Clusters in a batch."""

    def lazy_batches(
        self, graph: Graph, train: Ids, generator: torch.Generator
    ) -> Iterator[LazyBatch]:
        batches = self.fixed_batches(graph, train)
        if batches is None:
            return super().lazy_batches(graph, train, generator)
        return shuffled(batches, generator)

    def fixed_batches(self, graph: Graph, train: Ids) -> list[LazyBatch] | None:
        if self.at_once > 1:
            return None
        return list(self.lazy_batches_of(graph, train, self.clusters(graph)))

    def partition_batches(
        self, graph: Graph, generator: torch.Generator
    ) -> Iterable[Ids]:
        clusters = self.clusters(graph)
        order = torch.randperm(self.parts, generator=generator)
        for group in order.split(self.at_once):
            yield torch.cat([clusters[part] for part in group]).sort().values

    def clusters(self, graph: Graph) -> tuple[Ids, ...]:
        """The nodes of each cluster, in ascending order."""
        part_of_node = partition(graph.adjacency, self.parts)
        return partition_members(part_of_node.to(graph.labels.device), self.parts)


def partition(adjacency: Adjacency, parts: int) -> Int[Tensor, " nodes"]:
    """The METIS part of each node, cached in memory and on disk."""
    key = ("METIS", parts)
    if key not in adjacency.cache:
        path = _folder() / f"{_partition_key(adjacency)}-{parts}.npy"
        with file_lock(path):
            part_of_node = _read(path, adjacency.num_rows, parts)
            if part_of_node is None:
                part_of_node = _metis(adjacency, parts)
                with atomic_write(path) as partial, partial.open("wb") as file:
                    np.save(file, part_of_node)
        adjacency.cache[key] = torch.from_numpy(part_of_node).long()
    cached: Tensor = adjacency.cache[key]
    return cached


def _folder() -> Path:
    """The first writable folder for partitions."""
    roots = (data_root(), cache_dir())
    for root in roots:
        if is_writable(root / "partitions"):
            return root / "partitions"
    raise UserError(f"Neither {roots[0]} nor {roots[1]} can be written.")


def _partition_key(adjacency: Adjacency) -> str:
    digest = sha256()
    for array in (adjacency.indptr, adjacency.indices):
        digest.update(np.ascontiguousarray(array.cpu().numpy()).data)
    return digest.hexdigest()[:32]


def _read(path: Path, nodes: int, parts: int) -> np.ndarray | None:
    """The partition in a file; None if it is missing or damaged."""
    try:
        with path.open("rb") as file:
            part_of_node = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    fits = part_of_node.shape == (nodes,) and part_of_node.dtype == np.int32
    inside = fits and ((part_of_node >= 0) & (part_of_node < parts)).all()
    return part_of_node if inside else None


def _metis(adjacency: Adjacency, parts: int) -> np.ndarray:
    """Partition by METIS without directions, weights and self-loops."""
    pymetis = require("pymetis", "clusters", "Clusters need pymetis")
    nodes = adjacency.num_rows
    if parts == 1 or nodes <= parts:
        return np.arange(nodes, dtype=np.int32) % parts
    edges = adjacency.pattern.to_undirected()
    is_loop = edges.row_indices == edges.indices
    indptr = edges.indptr.clone()
    indptr[1:] -= edges.diagonal.long().cumsum(0)
    rows = pymetis.CSRAdjacency(indptr.numpy(), edges.indices[~is_loop].long().numpy())
    return np.asarray(pymetis.part_graph(parts, rows, recursive=False)[1], np.int32)
