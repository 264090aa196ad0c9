"""Unbiased homophily: one number for any number and balance of classes."""

import math

import numpy as np

from unalike.measures.ratio import ratio
from unalike.measures.tally import Tally


def unbiased_homophily(tally: Tally) -> float:
    """Edges inside classes against edges between them, blind to the sizes of classes.

    (S^2 - 1) / (S^2 + 1 - 2 * sum c_kk) with S = sum sqrt(c_kk) and c_kk the share of
    edges inside class k. From -1, no edge inside a class, to 1, no edge between classes
    (Mironov and Prokhorenkova 2024, arXiv:2412.09663). Undirected graphs only.
    """
    inside = tally.edges.diagonal() / max(tally.edges.sum(), 1)
    if tally.directed or not tally.edges.any():
        return math.nan
    root = np.sqrt(inside).sum() ** 2
    return ratio(root - 1, root + 1 - 2 * inside.sum())
