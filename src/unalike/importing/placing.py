"""Placing: spilled pairs become sorted rows without repeats, block by block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from unalike.draft import Draft
from unalike.importing.edges import Spill
from unalike.importing.threads import WORKERS, ahead, in_threads, slices
from unalike.kernels.compiled import compiled
from unalike.kernels.sorting import sort_run
from unalike.progress import Progress

BLOCK = 1 << 30
"""Entries that are held in memory at once; the spill is read once for each block."""

LONG = 64
"""Rows from this length on are sorted by numpy, which is faster but slower to call."""


@dataclass(frozen=True)
class Placed:
    """What became of the edges."""

    num_entries: int
    num_loops: int


def place_rows(
    spill: Spill, rank: np.ndarray, draft: Draft, progress: Progress
) -> Placed:
    """Write `starts` and `columns`; node c of the spill becomes row rank[c]."""
    num_nodes = len(rank)
    starts = np.zeros(num_nodes + 1, np.int64)
    starts[1 + rank] = spill.entries[:num_nodes]
    np.cumsum(starts, out=starts)
    degrees = np.zeros(num_nodes, np.int64)
    blocks = list(_blocks(starts, BLOCK))
    progress.stage("Placing edges", spill.num_pairs * len(blocks), "edges")
    num_loops = 0
    with draft.appending("columns", np.int32) as append:
        for low, high in blocks:
            entries = _gather(spill, rank, starts, (low, high), progress)
            for piece, loops in _ordered(entries, starts, (low, high), degrees):
                append(piece)
                num_loops += loops
    np.cumsum(degrees, out=starts[1:])
    draft.add("starts", starts)
    return Placed(int(starts[-1]), num_loops)


def _blocks(starts: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Runs of rows with at most so many entries, or of one row with more."""
    low, num_rows = 0, len(starts) - 1
    while low < num_rows:
        fits = int(np.searchsorted(starts, starts[low] + most, "right")) - 1
        high = min(num_rows, max(low + 1, fits))
        yield low, high
        low = high


def _gather(
    spill: Spill,
    rank: np.ndarray,
    starts: np.ndarray,
    block: tuple[int, int],
    progress: Progress,
) -> np.ndarray:
    """The entries of a block of rows, in the order of the spill."""
    low, high = block
    entries = np.empty(starts[high] - starts[low], np.int32)
    cursor = starts[low:high] - starts[low]
    parts = _shares(starts, block)
    for pairs in ahead(spill.chunks()):
        in_threads(partial(_renumber, pairs, rank), slices(len(pairs)))
        where = (spill.mirrored, low, cursor, entries)
        in_threads(partial(place_pairs, pairs, *where), parts)
        progress.advance(len(pairs))
    return entries


def _renumber(pairs: np.ndarray, rank: np.ndarray, part: slice) -> None:
    renumber(pairs[part], rank)


def _ordered(
    entries: np.ndarray, starts: np.ndarray, block: tuple[int, int], degrees: np.ndarray
) -> list[tuple[np.ndarray, int]]:
    """The entries of each share of a block, sorted and merged, and its loops."""
    base = starts[block[0]]

    def order(part: tuple[int, int]) -> tuple[np.ndarray, int]:
        first, end = part
        own = entries[starts[first] - base : starts[end] - base]
        ends = starts[first : end + 1] - starts[first]
        for row in (np.diff(ends) >= LONG).nonzero()[0].tolist():
            own[ends[row] : ends[row + 1]].sort()
        length, loops = merge_rows(own, ends, first, degrees[first:end])
        return own[:length], loops

    return in_threads(order, _shares(starts, block))


def _shares(starts: np.ndarray, block: tuple[int, int]) -> list[tuple[int, int]]:
    """A block of rows cut so that each worker gets about as many entries."""
    low, high = block
    goals = np.linspace(starts[low], starts[high], WORKERS + 1)[1:-1]
    cuts = [low, *np.searchsorted(starts[low:high], goals) + low, high]
    return [(int(a), int(b)) for a, b in pairwise(cuts) if a < b]


@compiled()
def renumber(pairs: np.ndarray, rank: np.ndarray) -> None:
    """Replace every code by its rank."""
    for i in range(len(pairs)):
        pairs[i, 0] = rank[pairs[i, 0]]
        pairs[i, 1] = rank[pairs[i, 1]]


@compiled()
def place_pairs(
    pairs: np.ndarray,
    mirrored: bool,
    base: int,
    cursor: np.ndarray,
    entries: np.ndarray,
    part: tuple[int, int],
) -> None:
    """Put the ends of edges into the rows from part[0] to part[1]."""
    low, high = part
    for i in range(len(pairs)):
        source, target = pairs[i, 0], pairs[i, 1]
        if low <= source < high:
            entries[cursor[source - base]] = target
            cursor[source - base] += 1
        if mirrored and source != target and low <= target < high:
            entries[cursor[target - base]] = source
            cursor[target - base] += 1


@compiled()
def merge_rows(
    entries: np.ndarray, starts: np.ndarray, first: int, degrees: np.ndarray
) -> tuple[int, int]:
    """Sort each row, drop its repeats and close the gaps; counts loops on the way."""
    length, loops = 0, 0
    for row in range(len(degrees)):
        begin = length
        own = entries[starts[row] : starts[row + 1]]
        if len(own) < LONG:
            sort_run(own, own[:0], np.int64(0), len(own))
        for i in range(len(own)):
            if i == 0 or own[i] != own[i - 1]:
                loops += own[i] == first + row
                entries[length] = own[i]
                length += 1
        degrees[row] = length - begin
    return length, loops
