"""Ranges of rows with about as many edges each."""

from itertools import pairwise

import numpy as np


def row_ranges(starts: np.ndarray, size: int) -> list[tuple[int, int]]:
    """Ranges that cover all rows with edges, about `size` edges each."""
    aims = np.arange(0, starts[-1], size)
    firsts = np.unique(np.searchsorted(starts[1:], aims, side="right")).tolist()
    return list(pairwise([*firsts, len(starts) - 1]))
