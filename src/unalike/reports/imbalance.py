"""The figure of the imbalance experiment: a measure that larger classes mislead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from unalike.graph import Graph
from unalike.measures import measure
from unalike.reports.canvas import OTHER, SAME, panels, styled

NODES, CHANCE, GRAPHS = 100, 0.25, 100
SIZES = (*range(50, 100, 5), 99)
SHOWN = {
    "edge_homophily": ("edge homophily", SAME, "-"),
    "class_homophily": ("class homophily", OTHER, "--"),
}


@styled
def imbalance(_: Mapping[str, Graph]) -> Any:
    """Two measures of random graphs as one of two classes grows.

    The edges know nothing of the labels: each of 100 graphs joins each pair of 100
    nodes with probability 1/4. The bands are three standard deviations to each side.
    """
    figure, (ax,) = panels(1, columns=1, size=(4.6, 3.2))
    for name, values in experiment().items():
        title, colour, line = SHOWN[name]
        mean, spread = values.mean(1), 3 * values.std(1)
        ax.plot(SIZES, mean, line, color=colour, lw=2)
        ax.fill_between(
            SIZES, mean - spread, mean + spread, color=colour, alpha=0.2, lw=0
        )
        ax.text(51, mean[0] + 0.11, title, color=colour, fontsize=10)
    ax.set_xlabel("nodes of 100 in the larger class")
    ax.set_ylabel("homophily of random graphs")
    ax.set_xlim(50, 99)
    ax.set_ylim(-0.05, 1.02)
    ax.set_xticks([*range(50, 100, 10), 99])
    return figure


def experiment(seed: int = 0) -> dict[str, Float[np.ndarray, "sizes graphs"]]:
    """Each measure for each size of the larger class and each random graph."""
    draw = np.random.default_rng(seed)
    found = [
        [measure(random_graph(size, draw), only=list(SHOWN)) for _ in range(GRAPHS)]
        for size in SIZES
    ]
    return {
        name: np.array([[values[name] for values in row] for row in found])
        for name in SHOWN
    }


def random_graph(larger: int, draw: np.random.Generator) -> Graph:
    """A graph whose edges are independent of its two classes."""
    pairs = np.array(np.triu_indices(NODES, 1))
    ends = torch.from_numpy(pairs[:, draw.random(pairs.shape[1]) < CHANCE])
    labels = (torch.arange(NODES) >= larger).long()
    return Graph.from_edges(*ends, num_nodes=NODES, labels=labels, num_classes=2)
