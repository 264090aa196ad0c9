"""Degrees: how many nodes of a graph have how many neighbours."""

from __future__ import annotations

import numpy as np

from unalike.graph import Graph
from unalike.measures.convention import BOTH_WAYS
from unalike.measures.degrees import degree_counts
from unalike.measures.view import View
from unalike.reports.degree_plots import smoothed
from unalike.site.cell import Document


def degrees(graph: Graph) -> Document:
    """Every degree with its nodes, and the mean of stretches of degrees.

    Edges are read both ways; nodes without any are counted apart.
    """
    found, counts = degree_counts(View.of(graph, BOTH_WAYS))
    some = found > 0
    line: list[np.ndarray] = [np.empty(0), np.empty(0)]
    if some.any():
        line = list(smoothed(found[some], counts[some]))
    return {
        "degrees": found[some].tolist(),
        "counts": counts[some].tolist(),
        "line": [np.round(values, 4).tolist() for values in line],
        "mean": float((found * counts).sum() / counts.sum()),
        "alone": int(counts[~some].sum()),
    }
