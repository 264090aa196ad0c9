"""Mirror: the rows of a directed graph with every edge both ways, some at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import torch

from unalike.adjacency import Adjacency
from unalike.datasets.ranges import row_ranges
from unalike.draft import Draft
from unalike.kernels.compiled import compiled
from unalike.progress import Progress

Given = TypeVar("Given")
Made = TypeVar("Made")

AT_ONCE = 1 << 27
"""Entries that are merged at once, by all threads together."""


def write_mirrored(
    draft: Draft, rows: Adjacency, progress: Progress
) -> tuple[int, int]:
    """Put rows and their mirror images into a draft; counts entries and loops.

    The rows are read once for each range of nodes, and of the others only the entries
    that name a node of the range: these arrive there in ascending order.
    """
    starts, columns = rows.starts.numpy(), rows.columns.numpy()
    threads = torch.get_num_threads()
    arrivals = np.zeros_like(starts)
    np.cumsum(_count(columns, rows.num_rows, threads), out=arrivals[1:])
    degrees = np.zeros_like(starts)
    ranges = row_ranges(starts + arrivals, max(AT_ONCE // threads, 1))

    def work(nodes: tuple[int, int]) -> tuple[np.ndarray, int]:
        arrived = arrive(starts, columns, arrivals, *nodes)
        return merge(starts, columns, arrivals, arrived, *nodes, degrees[1:])

    num_loops = 0
    progress.stage("Mirroring edges", len(columns) / 1e6, "million")
    with draft.appending("columns", columns.dtype) as append:
        for nodes, made in zip(ranges, in_turn(work, ranges, threads), strict=True):
            append(made[0])
            num_loops += made[1]
            progress.advance(float(starts[nodes[1]] - starts[nodes[0]]) / 1e6)
    np.cumsum(degrees, out=degrees)
    draft.add("starts", degrees)
    return int(degrees[-1]), num_loops


def _count(columns: np.ndarray, num_nodes: int, threads: int) -> np.ndarray:
    """How many entries name each node."""
    cuts = np.array_split(columns, threads)
    parts = in_turn(lambda cut: count(cut, num_nodes), cuts, threads)
    return sum(parts, np.zeros(num_nodes, np.int64))


def in_turn(
    work: Callable[[Given], Made], given: Sequence[Given], threads: int
) -> Iterator[Made]:
    """What `work` makes of each thing, in order; few are held while one is used."""
    waiting: deque[Future[Made]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for one in given:
            if len(waiting) == threads:
                yield waiting.popleft().result()
            waiting.append(pool.submit(work, one))
        while waiting:
            yield waiting.popleft().result()


@compiled()
def count(columns: np.ndarray, num_nodes: int) -> np.ndarray:
    """How often each node is named."""
    counts = np.zeros(num_nodes, np.int64)
    for i in range(len(columns)):
        counts[columns[i]] += 1
    return counts


@compiled()
def arrive(
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


@compiled()
def merge(
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
