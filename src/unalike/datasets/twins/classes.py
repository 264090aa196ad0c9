"""The classes a twin's edges lead to: dealt to each row by the taste of its node."""

from __future__ import annotations

import numpy as np

from unalike.datasets.twins.society import Society
from unalike.kernels.compiled import compiled
from unalike.kernels.streams import STEP, pick, stream, uniform

_ROUNDS = 5


def deal_classes(society: Society, edges: np.ndarray, seed: int) -> np.ndarray:
    """How many edges each node sends to each class: in sum, exactly `edges`."""
    counts = np.zeros(society.likings.shape, np.int32)
    limits = np.bincount(society.groups, minlength=len(edges)) // 2
    for group, deck in enumerate(edges):
        rows = society.members(group)
        tastes = balanced(society.likings[rows] * deck, society.degrees[rows], deck)
        deal(rows, society.degrees, tastes, deck, limits, seed, counts)
    return counts


def balanced(tastes: np.ndarray, degrees: np.ndarray, deck: np.ndarray) -> np.ndarray:
    """Tastes that add up to 1 for each node and, over its edges, to the deck.

    Rows and columns are scaled in turn (iterative proportional fitting).
    """
    tastes = tastes.astype(np.float64)
    for _ in range(_ROUNDS):
        tastes *= deck / np.maximum(degrees @ tastes, 1e-300)
        tastes /= np.maximum(tastes.sum(1, keepdims=True), 1e-300)
    return tastes


@compiled()
def deal(
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
        state = stream(seed, row)
        for _ in range(degrees[row]):
            state += STEP
            group = pick(chances, uniform(state))
            if group < 0:
                # The tastes name only what is used up: take what is left, or anything.
                group = _most_left(counts[row], limits, left)
            counts[row, group] += 1
            left[group] -= 1
            if left[group] <= 0 or counts[row, group] >= limits[group]:
                chances[group] = 0
        _add(expected, tastes[place], -degrees[row])


@compiled()
def _add(sums: np.ndarray, tastes: np.ndarray, times: int) -> None:
    for group in range(len(sums)):
        sums[group] += times * tastes[group]


@compiled()
def _most_left(counts: np.ndarray, limits: np.ndarray, left: np.ndarray) -> int:
    """The class with the most edges left among those below their limit."""
    best, most = 0, -(2**62)
    for group in range(len(left)):
        if counts[group] < limits[group] and left[group] > most:
            best, most = group, left[group]
    return best
