"""The figure of compatibility matrices: where the edges of each class end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from unalike.graph import Graph
from unalike.measures import measure
from unalike.reports.canvas import INK, panels, styled

WRITTEN = 10
"""Matrices of up to so many classes have their numbers written in."""
COLOURS = "Purples"


@styled
def heat_maps(graphs: Mapping[str, Graph]) -> Any:
    """One heat map for each graph, all on the same scale from 0 to 1."""
    figure, axes = panels(len(graphs), columns=3, size=(2.5, 2.6))
    image = None
    for ax, (name, graph) in zip(axes, graphs.items(), strict=True):
        matrix = np.array(measure(graph, only=["compatibility"])["compatibility"])
        image = heat_map(ax, matrix)
        ax.set_title(name)
    figure.supxlabel("class of the target")
    figure.supylabel("class of the source")
    bar = figure.colorbar(image, ax=list(axes), aspect=40, shrink=0.8, pad=0.02)
    bar.outline.set_visible(False)
    bar.set_label("share of the source's edges")
    return figure


def heat_map(ax: Any, matrix: np.ndarray, empty: str = "no edges") -> Any:
    """One matrix; the row of a class that has nothing is hatched and says so."""
    from matplotlib.patches import Rectangle

    size = len(matrix)
    image = ax.imshow(matrix, cmap=COLOURS, vmin=0, vmax=1)
    for row in np.flatnonzero(np.isnan(matrix).all(1)):
        where = ((-0.5, row - 0.5), size, 1)
        ax.add_patch(Rectangle(*where, fill=False, hatch="////", ec="#bbbbbb", lw=0))
        box = {"fc": "white", "ec": "none", "pad": 1.5}
        middle = ((size - 1) / 2, row)
        ax.text(*middle, empty, ha="center", va="center", fontsize=8, bbox=box)
    if size <= WRITTEN:
        write_numbers(ax, matrix)
        ax.set_xticks(range(size))
        ax.set_yticks(range(size))
    ax.tick_params(length=0)
    ax.spines[:].set(visible=True, color="#cccccc", linewidth=0.6)
    return image


def write_numbers(ax: Any, matrix: np.ndarray) -> None:
    """The share in each cell, light on dark cells."""
    for (row, column), share in np.ndenumerate(matrix):
        if not np.isnan(share):
            colour = "white" if share > 0.6 else INK
            told = f"{share:.2f}".lstrip("0") if share < 1 else "1"
            style = {"color": colour, "fontsize": 8, "ha": "center", "va": "center"}
            ax.text(column, row, told, **style)
