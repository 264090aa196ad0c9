"""Cluster-GCN: METIS partition, cached on disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse
import torch
from jaxtyping import Int
from torch import Tensor

from unalike.data.adjacency import Adjacency, Ids
from unalike.data.graph import Graph
from unalike.datasets.paths import data_root, is_writable
from unalike.errors import UserError, require_positive
from unalike.files import file_lock
from unalike.samplers.base import (
    LazyBatch,
    PartitionSampler,
    partition_members,
    shuffled,
)
from unalike.system import cache_dir

# Partition: parts of like size with few edges between them, found once by METIS.


_FOUND: WeakKeyDictionary[Adjacency, dict[int, Int[Tensor, " nodes"]]] = (
    WeakKeyDictionary()
)
"""What was asked before, as long as the rows live."""


def partition(adjacency: Adjacency, parts: int) -> Int[Tensor, " nodes"]:
    """The part of each node; kept on disk for the next time."""
    known = _FOUND.setdefault(adjacency, {})
    if parts not in known:
        known[parts] = torch.from_numpy(_load_or_compute(adjacency, parts)).long()
    return known[parts]


def _load_or_compute(adjacency: Adjacency, parts: int) -> np.ndarray:
    path = _folder() / f"{_fingerprint(adjacency)}-{parts}.npy"
    with file_lock(path):
        held = _read(path)
        if held is None or not _is_valid(held, adjacency.num_rows, parts):
            held = _metis(adjacency, parts)
            _write(path, held)
    return held


def _folder() -> Path:
    """The first folder of partitions that can be written."""
    roots = (data_root(), cache_dir())
    for root in roots:
        if is_writable(root / "partitions"):
            return root / "partitions"
    raise UserError(f"Neither {roots[0]} nor {roots[1]} can be written.")


def _fingerprint(adjacency: Adjacency) -> str:
    told = sha256()
    for part in (adjacency.indptr, adjacency.indices):
        told.update(np.ascontiguousarray(part.cpu().numpy()).data)
    return told.hexdigest()[:32]


def _read(path: Path) -> np.ndarray | None:
    """What a file holds; nothing where it is missing or damaged."""
    try:
        with path.open("rb") as file:
            return np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None


def _is_valid(held: np.ndarray, nodes: int, parts: int) -> bool:
    if held.shape != (nodes,) or held.dtype != np.int32:
        return False
    return not nodes or bool(held.min() >= 0 and held.max() < parts)


def _write(path: Path, part_of_node: np.ndarray) -> None:
    """Write beside the path first, so that it never names half a file."""
    with NamedTemporaryFile(dir=path.parent, delete=False) as file:
        np.save(file, part_of_node)
    Path(file.name).replace(path)


def _metis(adjacency: Adjacency, parts: int) -> np.ndarray:
    """Parts by METIS, over the edges in either direction, each of them alike."""
    try:
        from pymetis import CSRAdjacency, part_graph
    except ImportError:
        told = "Clusters need pymetis: pip install 'unalike[clusters]'."
        raise UserError(told) from None
    nodes = adjacency.num_rows
    if parts == 1 or nodes <= parts:
        return np.arange(nodes, dtype=np.int32) % parts
    starts, columns = _undirected_without_loops(adjacency)
    rows = CSRAdjacency(starts, columns)
    return np.asarray(part_graph(parts, rows, recursive=False)[1], np.int32)


def _undirected_without_loops(adjacency: Adjacency) -> Iterator[np.ndarray]:
    """The rows of the symmetric graph without its loops."""
    rows = adjacency.to_scipy().astype(bool)
    both = scipy.sparse.csr_array(rows + rows.T)
    both.setdiag(0)
    both.eliminate_zeros()
    return (part.astype(np.int64) for part in (both.indptr, both.indices))


# Clusters: parts with few edges between them, some at a time.


@dataclass(frozen=True, kw_only=True)
class ClusterSampler(PartitionSampler):
    """A batch is a group of clusters with the edges between them.

    The clusters are those of METIS and stay; each epoch groups them anew (Cluster-GCN,
    Chiang et al. 2019, https://arxiv.org/abs/1905.07953). One at a time, they are the
    same batches in every epoch.
    """

    parts: int = 200
    """Clusters of the graph."""
    at_once: int = 1
    """Clusters in a batch."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "parts", "at_once")

    def lazy_batches(
        self, graph: Graph, train: Ids, chance: torch.Generator
    ) -> Iterator[LazyBatch]:
        cuts = self.fixed_batches(graph, train)
        if cuts is None:
            return super().lazy_batches(graph, train, chance)
        return shuffled(cuts, chance)

    def fixed_batches(self, graph: Graph, train: Ids) -> list[LazyBatch] | None:
        if self.at_once > 1:
            return None
        return list(self.lazy_batches_of(graph, train, self.clusters(graph)))

    def partition_batches(self, graph: Graph, chance: torch.Generator) -> Iterable[Ids]:
        clusters = self.clusters(graph)
        order = torch.randperm(self.parts, generator=chance)
        for group in order.split(self.at_once):
            yield torch.cat([clusters[part] for part in group]).sort().values

    def clusters(self, graph: Graph) -> tuple[Ids, ...]:
        """The nodes of each cluster, in ascending order."""
        part_of_node = partition(graph.adjacency, self.parts)
        return partition_members(part_of_node.to(graph.labels.device), self.parts)
