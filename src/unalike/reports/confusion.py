"""The figure of confusion: which classes are taken for which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unalike.reports.canvas import panels, styled
from unalike.reports.heat_maps import WRITTEN, heat_map


@dataclass(frozen=True, eq=False)
class Confused:
    """Nodes by their class (row) and their answer (column), and what classes are."""

    title: str
    counts: np.ndarray
    names: list[str]


@styled
def draw_confusion(told: Confused) -> Any:
    """A heat map of the share of each class that got each answer."""
    sizes = told.counts.sum(1, keepdims=True)
    matrix = np.where(sizes > 0, told.counts / np.maximum(sizes, 1), np.nan)
    side = 2.0 + 0.32 * min(len(matrix), WRITTEN)
    figure, (ax,) = panels(1, columns=1, size=(side + 0.8, side))
    image = heat_map(ax, matrix, empty="no nodes")
    if len(matrix) <= WRITTEN:
        long = max(map(len, told.names)) > 3
        ax.set_xticks(range(len(matrix)), told.names, rotation=45 if long else 0)
        whole = [
            f"{name} ({int(size):,})"
            for name, size in zip(told.names, sizes[:, 0], strict=True)
        ]
        ax.set_yticks(range(len(matrix)), whole)
    ax.set_title(told.title)
    ax.set_xlabel("answer")
    ax.set_ylabel("class (test nodes)")
    bar = figure.colorbar(image, ax=ax, shrink=0.8, pad=0.03)
    bar.outline.set_visible(False)
    bar.set_label("share of the class")
    return figure
