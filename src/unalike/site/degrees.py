"""The degree distribution of a graph as JSON."""

from __future__ import annotations

import numpy as np

from unalike.graph import Graph
from unalike.measures.convention import BOTH_WAYS
from unalike.measures.degrees import degree_counts
from unalike.measures.view import View
from unalike.reports.degree_plots import smoothed
from unalike.site.cell import Document


def degree_document(graph: Graph) -> Document:
    """The number of nodes of every degree, and its mean over ranges of degrees.

    Edges count in both directions; isolated nodes are counted apart.
    """
    degrees, counts = degree_counts(View.of(graph, BOTH_WAYS))
    linked = degrees > 0
    means: list[np.ndarray] = [np.empty(0), np.empty(0)]
    if linked.any():
        means = list(smoothed(degrees[linked], counts[linked]))
    mean_degree, mean_nodes = (np.round(values, 4).tolist() for values in means)
    return {
        "rows": {
            "degree": degrees[linked].tolist(),
            "nodes": counts[linked].tolist(),
        },
        "means": {"degree": mean_degree, "nodes": mean_nodes},
        "mean": float((degrees * counts).sum() / counts.sum()),
        "num_isolated": int(counts[~linked].sum()),
    }
