"""The degree distribution: how many nodes have how many neighbours."""

import numpy as np
from jaxtyping import Int

from unalike.measures.view import View


def degree_counts(
    view: View,
) -> tuple[Int[np.ndarray, " degrees"], Int[np.ndarray, " degrees"]]:
    """Every degree that occurs, and the number of nodes that have it.

    The degree is the length of a row, loops and unlabelled neighbours included.
    """
    counts = np.bincount(np.diff(view.starts))
    degrees = np.flatnonzero(counts)
    return degrees, counts[degrees]
