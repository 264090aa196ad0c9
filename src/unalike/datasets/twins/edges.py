"""The edges of a twin: rows of distinct targets, drawn by attraction and taste."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from queue import SimpleQueue

import numpy as np
import torch

from unalike.datasets.ranges import row_ranges
from unalike.datasets.twins.society import Society
from unalike.kernels.compiled import compiled
from unalike.kernels.sorting import place_of, sort_run
from unalike.kernels.streams import STEP, fill_alias, stream, uniform
from unalike.progress import Progress

_EDGES_AT_ONCE = 2_000_000
_TRIES = 64
"""Draws of a target that is taken already, before the next free node is sought."""


@dataclass(frozen=True, eq=False)
class Targets:
    """Alias tables: whom a node of one class draws within another.

    Places run over the nodes ordered by class, class l from bounds[l] to bounds[l + 1];
    a node of class k draws from row k of the tables.
    """

    members: np.ndarray
    bounds: np.ndarray
    keep: np.ndarray
    other: np.ndarray

    @classmethod
    def of(cls, society: Society) -> Targets:
        """Tables that weigh node v for class k by its attraction and liking of k."""
        num_groups = society.likings.shape[1]
        members = np.argsort(society.groups, kind="stable").astype(np.int32)
        bounds = np.searchsorted(society.groups[members], np.arange(num_groups + 1))
        keep = np.empty((num_groups, len(members)), np.float32)
        other = np.empty((num_groups, len(members)), np.int32)
        for begin, end in pairwise(bounds):
            ids = members[begin:end]
            weights = society.attractions[ids] * society.likings[ids].T
            for group in range(num_groups):
                row = (group, slice(begin, end))
                fill_alias(weights[group], ids, keep[row], other[row])
        return cls(members, bounds, keep, other)


def draw_rows(
    society: Society,
    counts: np.ndarray,
    columns: np.ndarray,
    *,
    pairs: bool,
    seed: int,
    progress: Progress,
) -> np.ndarray:
    """Fill in the targets of every row, ascending and without repeats; returns starts.

    Where edges are unordered pairs, a row also avoids the earlier rows that hold it;
    they must be finished then, so one thread works through the rows in order.
    """
    num_threads = 1 if pairs else torch.get_num_threads()
    starts = np.concatenate([[0], np.cumsum(society.degrees)])
    targets = Targets.of(society)
    tables = (targets.members, targets.bounds, targets.keep, targets.other)
    marks: SimpleQueue[np.ndarray] = SimpleQueue()
    for _ in range(num_threads):
        marks.put(np.full(society.num_nodes, -1, np.int32))

    def work(rows: tuple[int, int]) -> int:
        mark = marks.get()
        drawn = (society.groups, counts, starts)
        fill_rows(*rows, *drawn, *tables, pairs, seed, mark, columns)
        marks.put(mark)
        return int(starts[rows[1]] - starts[rows[0]])

    progress.stage("Drawing edges", len(columns) / 1e6, "million")
    with ThreadPoolExecutor(num_threads) as pool:
        for done in pool.map(work, row_ranges(starts, _EDGES_AT_ONCE)):
            progress.advance(done / 1e6)
    return starts


@compiled()
def fill_rows(
    first: int,
    last: int,
    groups: np.ndarray,
    counts: np.ndarray,
    starts: np.ndarray,
    members: np.ndarray,
    bounds: np.ndarray,
    keep: np.ndarray,
    other: np.ndarray,
    pairs: bool,
    seed: int,
    mark: np.ndarray,
    columns: np.ndarray,
) -> None:
    """Draw the targets of some rows; `mark` holds the last row that took each node."""
    for row in range(first, last):
        mark[row] = row
        state, end, own = stream(seed, row), starts[row], groups[row]
        for group in range(counts.shape[1]):
            begin, size = bounds[group], bounds[group + 1] - bounds[group]
            for _ in range(counts[row, group]):
                tries, place, target = 0, 0, np.int64(row)
                while taken(row, target, mark, pairs, starts, columns):
                    if tries < _TRIES:
                        state += STEP
                        spot = uniform(state) * size
                        place = begin + int(spot)
                        stays = spot - int(spot) < keep[own, place]
                        chosen = members[place] if stays else other[own, place]
                        target = np.int64(chosen)
                    else:
                        place = (place + 1) % len(members)
                        target = np.int64(members[place])
                    tries += 1
                mark[target] = row
                columns[end] = target
                end += 1
        sort_run(columns, columns[:0], starts[row], end)


@compiled()
def taken(
    row: int,
    target: np.int64,
    mark: np.ndarray,
    pairs: bool,
    starts: np.ndarray,
    columns: np.ndarray,
) -> bool:
    """Is the target in this row already or, as a pair, is this row in the target's?"""
    if mark[target] == row:
        return True
    if not pairs or target > row:
        return False
    return place_of(columns, starts[target], starts[target + 1], row) >= 0
