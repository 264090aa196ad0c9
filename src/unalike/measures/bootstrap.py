"""The bootstrap: how much a measure would move with other nodes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unalike.measures.tally import Groups, Tally

GROUPS = 256
"""Groups of nodes that are resampled; a smaller graph has one group per node."""


def interval(
    groups: Groups, of: Callable[[Tally], float], replicates: int, seed: int = 0
) -> tuple[float, float]:
    """The middle 95 % of a measure over resampled graphs.

    What is drawn with replacement are nodes with their out-edges, in random groups, so
    that one pass over the edges serves every replicate.
    """
    draw = np.random.default_rng(seed)
    size = len(groups.vectors)
    weights = draw.multinomial(size, np.full(size, 1 / size), replicates).astype(float)
    values = np.array([of(groups.weighted(row)) for row in weights])
    known = values[~np.isnan(values)]
    low, high = np.quantile(known, [0.025, 0.975]) if len(known) else (np.nan, np.nan)
    return float(low), float(high)
