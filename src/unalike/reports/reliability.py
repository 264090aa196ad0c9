"""The figure of reliability: how often answers are right, by how sure they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from unalike.calibration import Reliability
from unalike.reports.canvas import CLASSES, panels, styled


@styled
def draw_reliability(found: Mapping[str, Reliability]) -> Any:
    """A panel for each; what lies on the diagonal can be taken at its word."""
    figure, axes = panels(len(found), columns=2, size=(3.2, 3.2))
    for ax, (title, told) in zip(axes, found.items(), strict=True):
        curve(ax, told)
        ax.set_title(f"{title}\nerror {100 * told.error:.1f} %")
    figure.supxlabel("how sure an answer is")
    axes[0].set_ylabel("how often it is right")
    return figure


def curve(ax: Any, told: Reliability) -> None:
    """Right answers against certainty; behind them, how many nodes are so sure."""
    counts = np.array(told.counts)
    edges = np.linspace(0, 1, len(counts) + 1)
    middles, width = (edges[:-1] + edges[1:]) / 2, edges[1]
    shares = counts / max(1, counts.sum())
    ax.bar(middles, shares, width * 0.92, color="#dde3e7", label="share of nodes")
    ax.plot([0, 1], [0, 1], color="#999999", linewidth=0.8, linestyle="--")
    there = counts > 0
    sure, right = np.array(told.confidence)[there], np.array(told.accuracy)[there]
    size = 12 + 88 * shares[there]
    ax.plot(sure, right, color=CLASSES[0], linewidth=1.2, label="right answers")
    ax.scatter(sure, right, s=size, color=CLASSES[0], zorder=3, clip_on=False)
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.legend(loc="upper left", fontsize=7.5, handlelength=1.2)
