"""Streams of random numbers, and choices by chance, for compiled loops.

Each row has a stream of its own (SplitMix64, Steele et al. 2014), so that what is drawn
does not depend on how many threads draw.
"""

from __future__ import annotations

import numpy as np

from unalike.kernels.compiled import compiled

STEP = np.uint64(0x9E3779B97F4A7C15)
"""What a stream's state grows by from one number to the next."""

_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@compiled()
def stirred(state: np.uint64) -> np.uint64:
    """The random bits of a state."""
    bits = (state ^ (state >> np.uint64(30))) * _FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
    return bits ^ (bits >> np.uint64(31))


@compiled()
def stream(seed: int, row: int) -> np.uint64:
    """The first state of a row."""
    return stirred(stirred(np.uint64(seed)) + STEP * np.uint64(row + 1))


@compiled()
def uniform(state: np.uint64) -> float:
    """A number from 0 up to 1, of 53 random bits."""
    return (stirred(state) >> np.uint64(11)) * 2.0**-53


@compiled()
def pick(chances: np.ndarray, share: float) -> int:
    """The place at a share of the summed chances; -1 where all of them are 0."""
    total = 0.0
    for place in range(len(chances)):
        total += chances[place]
    left = total * share
    last = -1
    for place in range(len(chances)):
        if chances[place] > 0:
            last = place
            left -= chances[place]
            if left < 0:
                break
    return last


@compiled()
def fill_alias(
    weights: np.ndarray, ids: np.ndarray, keep: np.ndarray, other: np.ndarray
) -> None:
    """Fill an alias table (Walker 1977; Vose 1991).

    A draw falls on a place evenly, stays there with the chance `keep`, and otherwise
    goes to the id `other`.
    """
    total = 0.0
    for place in range(len(weights)):
        total += weights[place]
    scale = len(weights) / total
    scaled = np.empty(len(weights), np.float64)
    for place in range(len(weights)):
        scaled[place] = weights[place] * scale
    stack = np.empty(len(weights), np.int64)
    poor, rich = 0, len(weights)
    for place in range(len(weights)):
        keep[place], other[place] = 1, ids[place]
        if scaled[place] < 1:
            stack[poor] = place
            poor += 1
        else:
            rich -= 1
            stack[rich] = place
    while poor > 0 and rich < len(weights):
        poor -= 1
        taker, giver = stack[poor], stack[rich]
        keep[taker], other[taker] = scaled[taker], ids[giver]
        scaled[giver] -= 1 - scaled[taker]
        if scaled[giver] < 1:
            stack[poor] = giver
            poor += 1
            rich += 1
