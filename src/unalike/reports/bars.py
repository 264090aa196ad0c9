"""Bars: the grades of several methods side by side, each split a dot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from unalike.reports.canvas import CLASSES, INK, panels, styled


@styled
def draw_bars(grades: Mapping[str, Sequence[float]]) -> Any:
    """A bar for the mean of each method, a dot for each of its splits."""
    figure, (axis,) = panels(1, columns=1, size=(4.6, 0.6 + 0.42 * len(grades)))
    for place, (name, told) in enumerate(grades.items()):
        best = mean(told) == max(mean(other) for other in grades.values())
        colour = CLASSES[0] if best else "#b8c4cc"
        axis.barh(place, mean(told), height=0.6, color=colour)
        axis.plot(told, [place] * len(told), "o", color=INK, markersize=2.5)
        axis.text(1, place, name, va="center", color="white" if best else INK)
        axis.text(max(told) + 1.5, place, f"{mean(told):.1f}", va="center")
    axis.set_yticks([])
    axis.set_xlim(0, 100)
    axis.invert_yaxis()
    axis.set_xlabel("test grade, %")
    return figure
