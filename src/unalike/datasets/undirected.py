"""Undirected copies of large directed graphs, built out of core and cached on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any, no_type_check

import numpy as np

from unalike.data.adjacency import Adjacency
from unalike.data.csr import row_blocks
from unalike.data.graph import Graph
from unalike.data.numba_utils import njit
from unalike.data.store import GraphWriter, StoredGraph, atomic_graph_writer
from unalike.datasets.stored import find_stored, store_once
from unalike.files import remove_folder
from unalike.parallel import num_threads, ordered_map, parallel_map
from unalike.progress import NO_PROGRESS, Progress

MAX_IN_MEMORY_EDGES = 20_000_000
"""Graphs with at most this many edges are made undirected in memory, each time."""

MAX_BLOCK_NNZ = 1 << 27
"""Edges and reverse edges that all threads together merge at a time."""

WRITER_KEYS = {"format", "unalike", "arrays"}
"""Metadata keys that `GraphWriter` writes itself."""

VERSION = 1
"""Increased when the algorithm changes, so that older copies are made again."""


def undirected_graph(
    stored: StoredGraph,
    name: str,
    data: Path | None = None,
    *,
    progress: Progress = NO_PROGRESS,
) -> Graph:
    """A stored graph made undirected; a large one is cached and memory-mapped."""
    graph, adjacency = stored.graph, stored.graph.adjacency
    fits = adjacency.nnz <= MAX_IN_MEMORY_EDGES
    if not graph.directed or adjacency.values is not None or fits:
        return graph.to_undirected()
    return cached_undirected(stored, name, data, progress=progress).graph


def cached_undirected(
    stored: StoredGraph,
    name: str,
    data: Path | None = None,
    *,
    progress: Progress = NO_PROGRESS,
) -> StoredGraph:
    """The stored undirected copy of a directed graph, with links to its features."""
    name, arrays = f"{name}-both-ways", stored.metadata["arrays"].items()
    source = {"maker": VERSION, **{key: array["sha256"] for key, array in arrays}}

    def find() -> StoredGraph | None:
        return find_stored(name, data, lambda made: made.get("directed") == source)

    def write(folder: Path) -> None:
        remove_folder(folder)
        _write(stored, folder, source, progress)

    return store_once(name, data, find, write)


def _write(
    stored: StoredGraph, folder: Path, source: dict[str, Any], progress: Progress
) -> None:
    with atomic_graph_writer(folder) as writer:
        nnz, num_loops = write_undirected(writer, stored.graph.adjacency, progress)
        for name, array in stored.metadata["arrays"].items():
            if name not in writer.names:
                writer.link_array(name, stored.folder / f"{name}.npy", array)
        metadata = {
            key: stored.metadata[key] for key in stored.metadata.keys() - WRITER_KEYS
        }
        changes = {
            "num_edges": (nnz + num_loops) // 2,
            "num_loops": num_loops,
            "directed": False,
            "provenance": {**metadata.get("provenance", {}), "directed": source},
        }
        writer.commit({**metadata, **changes})


def write_undirected(
    writer: GraphWriter, adjacency: Adjacency, progress: Progress
) -> tuple[int, int]:
    """Write the union of an adjacency and its transpose; returns nnz and self-loops.

    The adjacency is read once for each block of rows: of the other rows only the
    entries in the columns of the block are used.
    """
    indptr, indices = adjacency.indptr.numpy(), adjacency.indices.numpy()
    threads = num_threads()
    in_indptr = np.zeros_like(indptr)
    parts = np.array_split(indices, threads)
    counts = parallel_map(lambda part: bincount(part, adjacency.num_rows), parts)
    np.cumsum(sum(counts), out=in_indptr[1:])
    degrees = np.zeros_like(indptr)
    max_nnz = max(MAX_BLOCK_NNZ // threads, 1)
    blocks = list(row_blocks(indptr + in_indptr, max_nnz))

    def merge(block: tuple[int, int]) -> tuple[np.ndarray, int]:
        in_indices = reverse_edges(indptr, indices, in_indptr, *block)
        return merge_sorted_rows(
            indptr, indices, in_indptr, in_indices, *block, degrees[1:]
        )

    num_loops = 0
    progress.stage("Adding reverse edges", len(indices) / 1e6, "million")
    with writer.append_array("columns", indices.dtype) as append:
        merged = ordered_map(merge, blocks, threads)
        for (first, last), (rows, loops) in zip(blocks, merged, strict=True):
            append(rows)
            num_loops += loops
            progress.advance(float(indptr[last] - indptr[first]) / 1e6)
    np.cumsum(degrees, out=degrees)
    writer.add("starts", degrees)
    return int(degrees[-1]), num_loops


@njit()
@no_type_check
def bincount(indices, num_nodes):
    """`np.bincount` without the GIL and without a copy to int64."""
    counts = np.zeros(num_nodes, np.int64)
    for i in range(len(indices)):
        counts[indices[i]] += 1
    return counts


@njit()
@no_type_check
def reverse_edges(indptr, indices, in_indptr, low, high):
    """The sources of the edges into each node from `low` to `high`, ascending."""
    in_indices = np.empty(in_indptr[high] - in_indptr[low], indices.dtype)
    ends = in_indptr[low:high] - in_indptr[low]
    for row in range(len(indptr) - 1):
        end = indptr[row + 1]
        entry = indptr[row]
        if low > 0:
            entry += np.searchsorted(indices[entry:end], low)
        while entry < end and indices[entry] < high:
            node = indices[entry] - low
            in_indices[ends[node]] = row
            ends[node] += 1
            entry += 1
    return in_indices


@njit()
@no_type_check
def merge_sorted_rows(indptr, indices, in_indptr, in_indices, low, high, degrees):
    """The sorted union of out- and in-neighbours of each row, and the self-loops."""
    merged = np.empty(len(in_indices) + indptr[high] - indptr[low], indices.dtype)
    length, loops, shift = 0, 0, in_indptr[low]
    for row in range(low, high):
        start = length
        i, i_end = indptr[row], indptr[row + 1]
        j, j_end = in_indptr[row] - shift, in_indptr[row + 1] - shift
        while i < i_end or j < j_end:
            if j == j_end or (i < i_end and indices[i] < in_indices[j]):
                node = indices[i]
                i += 1
            else:
                node = in_indices[j]
                j += 1
                if i < i_end and indices[i] == node:
                    i += 1
            loops += node == row
            merged[length] = node
            length += 1
        degrees[row] = length - start
    return merged[:length], loops
