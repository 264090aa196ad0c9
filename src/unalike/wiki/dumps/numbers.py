"""Numbers: compiled look-ups from the ids of tables to numbers without gaps."""

from __future__ import annotations

import numpy as np

from unalike.kernels.compiled import compiled


@compiled()
def look_up(table: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """The entry of each id, -1 for those beyond the table."""
    found = np.empty(len(ids), np.int32)
    for i in range(len(ids)):
        inside = 0 <= ids[i] < len(table)
        found[i] = table[ids[i]] if inside else -1
    return found


@compiled()
def pair_up(sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The pairs of which both ends are known."""
    pairs = np.empty((len(sources), 2), np.int32)
    count = 0
    for i in range(len(sources)):
        if sources[i] >= 0 and targets[i] >= 0:
            pairs[count, 0] = sources[i]
            pairs[count, 1] = targets[i]
            count += 1
    return pairs[:count]
