"""Sampling of nodes, degrees, class preferences and edges."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from queue import SimpleQueue

import numpy as np
import torch

from unalike.data.csr import blocks_of_nnz
from unalike.data.numba_utils import (
    STEP,
    binary_search,
    build_alias_table,
    njit,
    sort_range,
    stream_seed,
    uniform,
    weighted_choice,
)
from unalike.errors import UserError
from unalike.progress import Progress

# The nodes of a twin: the class, the degree, the attraction and the taste of each.


MIN_PREFERENCE = 1e-3
"""Every node likes every class a little, so that a forced edge finds its target."""

_LARGEST = 8
"""No node sends edges to more than one in so many of the others."""


@dataclass(frozen=True)
class DegreeDistribution:
    """A log-normal body with a power tail: exp(spread * Z) / U ** (1 / (exponent - 1)).

    Z is normal and U uniform, so the density falls like degree ** -exponent.
    """

    exponent: float
    spread: float = 1.0

    def __post_init__(self) -> None:
        if not (self.exponent > 1 and self.spread >= 0):
            raise UserError(
                f"A tail has an exponent above 1 and a spread of 0 or more, not {self}."
            )

    def draw(
        self, random: np.random.Generator, count: int, total: int, limit: int
    ) -> np.ndarray:
        """So many numbers that add up to a total, none above the limit."""
        if total > limit * count / 2:
            raise UserError(f"{total} edges are too many for {count} nodes of a class.")
        weights = np.exp(self.spread * random.standard_normal(count))
        weights *= (1 - random.random(count)) ** (-1 / (self.exponent - 1))
        capped = np.zeros(count, bool)
        amounts = weights
        while True:
            room = total - limit * capped.sum()
            amounts = weights * (room / weights[~capped].sum())
            amounts[capped] = limit
            if not (amounts > limit).any():
                return amounts
            capped |= amounts > limit


@dataclass(frozen=True, eq=False)
class NodeParameters:
    """What is drawn of each node before there are edges."""

    classes: np.ndarray
    """The class of each node; nodes without a label are a class of their own."""
    degrees: np.ndarray
    """Edges that leave each node."""
    target_weights: np.ndarray
    """The weight of each node when a target is drawn within its class."""
    class_preferences: np.ndarray
    """How much each node likes each class, 1 being its own class's average."""

    @property
    def num_nodes(self) -> int:
        return len(self.classes)

    def members(self, group: int) -> np.ndarray:
        return np.flatnonzero(self.classes == group)


def sample_nodes(
    sizes: np.ndarray,
    edges: np.ndarray,
    *,
    leaving: DegreeDistribution,
    arriving: DegreeDistribution | None,
    monophily: float,
    random: np.random.Generator,
) -> NodeParameters:
    """Draw every node, given the nodes of each class and the edges between classes.

    Without a tail of arriving edges, a node attracts as many as it sends out.
    """
    groups = random.permutation(np.repeat(np.arange(len(sizes)), sizes))
    society = NodeParameters(
        groups,
        degrees=np.zeros(len(groups), np.int64),
        target_weights=np.zeros(len(groups)),
        class_preferences=np.ones((len(groups), len(sizes)), np.float32),
    )
    limit = max(len(groups) // _LARGEST, 1)
    for group, size in enumerate(sizes.tolist()):
        rows = society.members(group)
        sent, received = int(edges[group].sum()), int(edges[:, group].sum())
        amounts = leaving.draw(random, size, sent, limit)
        society.degrees[rows] = apportion(amounts, sent)
        if arriving is not None:
            amounts = arriving.draw(random, size, received, limit)
        society.target_weights[rows] = amounts
        met = edges[group] + edges[:, group]
        society.class_preferences[rows] = sample_preferences(
            random, size, met, monophily
        )
    return society


def sample_preferences(
    random: np.random.Generator, count: int, met: np.ndarray, monophily: float
) -> np.ndarray:
    """A taste for each node of a class that meets the others in given proportions.

    The tastes are Dirichlet around the proportions b with the concentration
    (1 - monophily) / monophily, so that any two neighbours of a node are correlated
    by `monophily`; divided by b they become likings, which are 1 on average.
    """
    if not monophily or not met.any():
        return np.ones((count, len(met)))
    base = met / met.sum()
    shapes = base * (1 - monophily) / monophily
    tastes = random.standard_gamma(shapes, (count, len(met)))
    tastes /= np.maximum(tastes.sum(1, keepdims=True), 1e-300)
    likings = np.divide(tastes, base, out=np.ones_like(tastes), where=base > 0)
    return np.maximum(likings, MIN_PREFERENCE)


def apportion(amounts: np.ndarray, total: int) -> np.ndarray:
    """Whole numbers in proportion to the amounts, each rounded up or down, that add up.

    The running sum is rounded instead of each amount (systematic rounding).
    """
    shares = np.cumsum(amounts) / max(np.sum(amounts), 1e-300)
    return np.diff(np.floor(shares * total + 0.5).astype(np.int64), prepend=0)


# The classes a twin's edges lead to: dealt to each row by the taste of its node.


_ROUNDS = 5


def sample_target_classes(
    society: NodeParameters, edges: np.ndarray, seed: int
) -> np.ndarray:
    """How many edges each node sends to each class: in sum, exactly `edges`."""
    counts = np.zeros(society.class_preferences.shape, np.int32)
    limits = np.bincount(society.classes, minlength=len(edges)) // 2
    for group, deck in enumerate(edges):
        rows = society.members(group)
        tastes = fit_marginals(
            society.class_preferences[rows] * deck, society.degrees[rows], deck
        )
        allocate_edges(rows, society.degrees, tastes, deck, limits, seed, counts)
    return counts


def fit_marginals(
    tastes: np.ndarray, degrees: np.ndarray, deck: np.ndarray
) -> np.ndarray:
    """Tastes that add up to 1 for each node and, over its edges, to the deck.

    Rows and columns are scaled in turn (iterative proportional fitting).
    """
    tastes = tastes.astype(np.float64)
    for _ in range(_ROUNDS):
        tastes *= deck / np.maximum(degrees @ tastes, 1e-300)
        tastes /= np.maximum(tastes.sum(1, keepdims=True), 1e-300)
    return tastes


@njit()
def allocate_edges(
    rows: np.ndarray,
    degrees: np.ndarray,
    tastes: np.ndarray,
    deck: np.ndarray,
    limits: np.ndarray,
    seed: int,
    counts: np.ndarray,
) -> None:
    """Deal the edges of a class, as a deck of target classes, to its rows.

    Row u draws class l with the chance tastes[u, l] * left[l] / expected[l]: the cards
    left over those that this row and the later ones should take. So the tastes decide,
    and the deck comes out even.
    """
    # Written out: whole-array expressions take seconds to compile.
    left, num_groups = deck.copy(), len(deck)
    expected, chances = np.zeros(num_groups), np.zeros(num_groups)
    for place in range(len(rows)):
        _add(expected, tastes[place], degrees[rows[place]])
    for place in range(len(rows)):
        row = rows[place]
        for group in range(num_groups):
            share = tastes[place, group] * left[group]
            chances[group] = share / max(expected[group], 1e-9)
        state = stream_seed(seed, row)
        for _ in range(degrees[row]):
            state += STEP
            group = weighted_choice(chances, uniform(state))
            if group < 0:
                # The tastes name only what is used up: take what is left, or anything.
                group = _most_left(counts[row], limits, left)
            counts[row, group] += 1
            left[group] -= 1
            if left[group] <= 0 or counts[row, group] >= limits[group]:
                chances[group] = 0
        _add(expected, tastes[place], -degrees[row])


@njit()
def _add(sums: np.ndarray, tastes: np.ndarray, times: int) -> None:
    for group in range(len(sums)):
        sums[group] += times * tastes[group]


@njit()
def _most_left(counts: np.ndarray, limits: np.ndarray, left: np.ndarray) -> int:
    """The class with the most edges left among those below their limit."""
    best, most = 0, -(2**62)
    for group in range(len(left)):
        if counts[group] < limits[group] and left[group] > most:
            best, most = group, left[group]
    return best


# The edges of a twin: rows of distinct targets, drawn by attraction and taste.


_EDGES_AT_ONCE = 2_000_000
_TRIES = 64
"""Draws of a target that is taken already, before the next free node is sought."""


@dataclass(frozen=True, eq=False)
class AliasTables:
    """Alias tables: whom a node of one class draws within another.

    Places run over the nodes ordered by class, class l from bounds[l] to bounds[l + 1];
    a node of class k draws from row k of the tables.
    """

    members: np.ndarray
    bounds: np.ndarray
    keep: np.ndarray
    other: np.ndarray

    @classmethod
    def of(cls, society: NodeParameters) -> AliasTables:
        """Tables that weigh node v for class k by its attraction and liking of k."""
        num_groups = society.class_preferences.shape[1]
        members = np.argsort(society.classes, kind="stable").astype(np.int32)
        bounds = np.searchsorted(society.classes[members], np.arange(num_groups + 1))
        keep = np.empty((num_groups, len(members)), np.float32)
        other = np.empty((num_groups, len(members)), np.int32)
        for begin, end in pairwise(bounds):
            ids = members[begin:end]
            weights = society.target_weights[ids] * society.class_preferences[ids].T
            for group in range(num_groups):
                row = (group, slice(begin, end))
                build_alias_table(weights[group], ids, keep[row], other[row])
        return cls(members, bounds, keep, other)


def sample_edges(
    society: NodeParameters,
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
    targets = AliasTables.of(society)
    tables = (targets.members, targets.bounds, targets.keep, targets.other)
    marks: SimpleQueue[np.ndarray] = SimpleQueue()
    for _ in range(num_threads):
        marks.put(np.full(society.num_nodes, -1, np.int32))

    def work(rows: tuple[int, int]) -> int:
        mark = marks.get()
        drawn = (society.classes, counts, starts)
        sample_rows(*rows, *drawn, *tables, pairs, seed, mark, columns)
        marks.put(mark)
        return int(starts[rows[1]] - starts[rows[0]])

    progress.stage("Drawing edges", len(columns) / 1e6, "million")
    with ThreadPoolExecutor(num_threads) as pool:
        for done in pool.map(work, blocks_of_nnz(starts, _EDGES_AT_ONCE)):
            progress.advance(done / 1e6)
    return starts


@njit()
def sample_rows(
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
        state, end, own = stream_seed(seed, row), starts[row], groups[row]
        for group in range(counts.shape[1]):
            begin, size = bounds[group], bounds[group + 1] - bounds[group]
            for _ in range(counts[row, group]):
                tries, place, target = 0, 0, np.int64(row)
                while is_duplicate(row, target, mark, pairs, starts, columns):
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
        sort_range(columns, columns[:0], starts[row], end)


@njit()
def is_duplicate(
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
    return binary_search(columns, starts[target], starts[target + 1], row) >= 0
