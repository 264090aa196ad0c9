"""The figure of degree distributions: a few nodes have very many neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from unalike.graph import Graph
from unalike.measures.convention import BOTH_WAYS
from unalike.measures.degrees import degree_counts
from unalike.measures.view import View
from unalike.reports.canvas import CLASSES, panels, styled


@styled
def degree_plots(graphs: Mapping[str, Graph]) -> Any:
    """Nodes by degree on two logarithmic axes, edges read both ways."""
    figure, axes = panels(len(graphs), columns=3, size=(2.5, 2.2))
    for ax, (name, graph) in zip(axes, graphs.items(), strict=True):
        degrees, counts = degree_counts(View.of(graph, BOTH_WAYS))
        plot_degrees(ax, degrees, counts)
        ax.set_title(name)
    figure.supxlabel("degree, edges read both ways")
    figure.supylabel("nodes of that degree (line: mean)")
    return figure


def plot_degrees(ax: Any, degrees: np.ndarray, counts: np.ndarray) -> None:
    """Every degree as a dot, and the mean of each stretch of degrees as a line."""
    some = degrees > 0
    mean = (degrees * counts).sum() / counts.sum()
    ax.loglog(
        degrees[some], counts[some], ".", ms=3.5, mew=0, color=CLASSES[0], zorder=3
    )
    ax.loglog(*smoothed(degrees[some], counts[some]), color=CLASSES[1], lw=2)
    told = f"mean {mean:,.1f}\nlargest {degrees.max():,}"
    if not some.all():
        told += f"\n{counts[0]:,} without edges"
    ax.text(0.05, 0.05, told, transform=ax.transAxes, va="bottom", fontsize=8)
    ax.set_xlim(left=0.8)
    ax.minorticks_off()


def smoothed(degrees: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes per degree over stretches that grow with the degree; none is empty."""
    top = np.log2(degrees.max() + 1)
    edges = np.unique(np.ceil(2 ** np.arange(0, top + 0.5, 0.5)).astype(int))
    nodes, _ = np.histogram(degrees, edges, weights=counts)
    middle = np.sqrt(edges[:-1] * (edges[1:] - 1))
    return middle[nodes > 0], (nodes / np.diff(edges))[nodes > 0]
