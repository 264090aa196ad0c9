"""Undirected copy of a large directed graph, built out of core and cached on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from unalike.data.adjacency import Adjacency
from unalike.data.csr import row_blocks
from unalike.data.graph import Graph
from unalike.data.numba_utils import njit
from unalike.data.store import GraphWriter, StoredGraph, atomic_graph_writer, open_graph
from unalike.datasets.paths import data_root, stored_folders, writable_stored_folder
from unalike.errors import UserError
from unalike.files import file_lock, remove_folder
from unalike.parallel import ordered_map
from unalike.progress import NO_PROGRESS, Progress

# Both ways: the undirected form of a directed stored graph, stored beside it.


MAX_IN_MEMORY_EDGES = 20_000_000
"""Edges up to which a graph is made symmetric in memory, each time."""

WRITER_KEYS = {"format", "unalike", "arrays"}
"""What each draft writes of itself."""

VERSION = 1
"""Raised when the making changes, so that what older ones made is made again."""


def undirected_graph(
    stored: StoredGraph,
    name: str,
    data: Path | None = None,
    *,
    progress: Progress = NO_PROGRESS,
) -> Graph:
    """A stored graph with every edge both ways; mapped too, if it is large."""
    graph, rows = stored.graph, stored.graph.adjacency
    if not graph.directed or rows.values is not None or rows.nnz <= MAX_IN_MEMORY_EDGES:
        return graph.to_undirected()
    return cached_undirected(stored, name, data, progress=progress).graph


def cached_undirected(
    stored: StoredGraph,
    name: str,
    data: Path | None = None,
    *,
    progress: Progress = NO_PROGRESS,
) -> StoredGraph:
    """The undirected form of a directed graph, made now if need be.

    Its features and labels are those of the directed graph, not copies of them.
    """
    name, origin = f"{name}-both-ways", _source_hashes(stored)
    if found := _find_cached(name, data, origin):
        return found
    place = writable_stored_folder(name, data)
    with file_lock(place):
        if found := _find_cached(name, data, origin):
            return found
        remove_folder(place)
        return _make(stored, place, origin, progress)


def _source_hashes(stored: StoredGraph) -> dict[str, Any]:
    """What an undirected form is made of: a hash for each array."""
    arrays = stored.metadata["arrays"].items()
    return {"maker": VERSION, **{name: facts["sha256"] for name, facts in arrays}}


def _find_cached(
    name: str, data: Path | None, origin: dict[str, Any]
) -> StoredGraph | None:
    """The undirected form that is there, if it was made of the same arrays."""
    for place in stored_folders(data_root(data), name):
        try:
            found = open_graph(place)
        except UserError:
            continue
        if found.metadata.get("provenance", {}).get("directed") == origin:
            return found
    return None


def _make(
    stored: StoredGraph, place: Path, origin: dict[str, Any], progress: Progress
) -> StoredGraph:
    # The compiler is slow to import, and what is there already needs none.

    with atomic_graph_writer(place) as draft:
        rows = stored.graph.adjacency
        num_entries, num_loops = write_undirected(draft, rows, progress)
        for name, facts in stored.metadata["arrays"].items():
            if name not in draft.names:
                draft.link_array(name, stored.folder / f"{name}.npy", facts)
        kept = {
            key: stored.metadata[key] for key in stored.metadata.keys() - WRITER_KEYS
        }
        changed = {
            "num_edges": (num_entries + num_loops) // 2,
            "num_loops": num_loops,
            "directed": False,
            "provenance": {**kept.get("provenance", {}), "directed": origin},
        }
        draft.commit({**kept, **changed})
    return open_graph(place)


# Mirror: the rows of a directed graph with every edge both ways, some at a time.


MAX_BLOCK_NNZ = 1 << 27
"""Entries that are merged at once, by all threads together."""


def write_undirected(
    draft: GraphWriter, rows: Adjacency, progress: Progress
) -> tuple[int, int]:
    """Put rows and their mirror images into a draft; counts entries and loops.

    The rows are read once for each range of nodes, and of the others only the entries
    that name a node of the range: these arrive there in ascending order.
    """
    starts, columns = rows.indptr.numpy(), rows.indices.numpy()
    threads = torch.get_num_threads()
    arrivals = np.zeros_like(starts)
    np.cumsum(_count(columns, rows.num_rows, threads), out=arrivals[1:])
    degrees = np.zeros_like(starts)
    ranges = list(row_blocks(starts + arrivals, max(MAX_BLOCK_NNZ // threads, 1)))

    def work(nodes: tuple[int, int]) -> tuple[np.ndarray, int]:
        arrived = reverse_edges(starts, columns, arrivals, *nodes)
        return merge_sorted_rows(
            starts, columns, arrivals, arrived, *nodes, degrees[1:]
        )

    num_loops = 0
    progress.stage("Mirroring edges", len(columns) / 1e6, "million")
    with draft.append_array("columns", columns.dtype) as append:
        for nodes, made in zip(ranges, ordered_map(work, ranges, threads), strict=True):
            append(made[0])
            num_loops += made[1]
            progress.advance(float(starts[nodes[1]] - starts[nodes[0]]) / 1e6)
    np.cumsum(degrees, out=degrees)
    draft.add("starts", degrees)
    return int(degrees[-1]), num_loops


def _count(columns: np.ndarray, num_nodes: int, threads: int) -> np.ndarray:
    """How many entries name each node."""
    cuts = np.array_split(columns, threads)
    parts = ordered_map(lambda cut: count(cut, num_nodes), cuts, threads)
    return sum(parts, np.zeros(num_nodes, np.int64))


@njit()
def count(columns: np.ndarray, num_nodes: int) -> np.ndarray:
    """How often each node is named."""
    counts = np.zeros(num_nodes, np.int64)
    for i in range(len(columns)):
        counts[columns[i]] += 1
    return counts


@njit()
def reverse_edges(
    starts: np.ndarray, columns: np.ndarray, arrivals: np.ndarray, low: int, high: int
) -> np.ndarray:
    """The rows that name each node from `low` to `high`, node by node."""
    arrived = np.empty(arrivals[high] - arrivals[low], columns.dtype)
    ends = arrivals[low:high] - arrivals[low]
    for row in range(len(starts) - 1):
        end = starts[row + 1]
        entry = starts[row]
        if low > 0:
            entry += np.searchsorted(columns[entry:end], low)
        while entry < end and columns[entry] < high:
            node = columns[entry] - low
            arrived[ends[node]] = row
            ends[node] += 1
            entry += 1
    return arrived


@njit()
def merge_sorted_rows(
    starts: np.ndarray,
    columns: np.ndarray,
    arrivals: np.ndarray,
    arrived: np.ndarray,
    low: int,
    high: int,
    degrees: np.ndarray,
) -> tuple[np.ndarray, int]:
    """Each node's own entries and what arrived, ascending, those in both once."""
    merged = np.empty(len(arrived) + starts[high] - starts[low], columns.dtype)
    length, loops, shift = 0, 0, arrivals[low]
    for row in range(low, high):
        begin = length
        own, own_end = starts[row], starts[row + 1]
        other, other_end = arrivals[row] - shift, arrivals[row + 1] - shift
        while own < own_end or other < other_end:
            if other == other_end or (own < own_end and columns[own] < arrived[other]):
                node = columns[own]
                own += 1
            else:
                node = arrived[other]
                other += 1
                if own < own_end and columns[own] == node:
                    own += 1
            loops += node == row
            merged[length] = node
            length += 1
        degrees[row] = length - begin
    return merged[:length], loops
