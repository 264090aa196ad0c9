"""Tables of figures by name: drawn from graphs, or from stored results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unalike.experiments.results import Results
from unalike.experiments.standing import Query
from unalike.graph import Graph
from unalike.reports.degree_plots import degree_plots
from unalike.reports.example_graphs import example_graphs
from unalike.reports.heat_maps import heat_maps
from unalike.reports.imbalance import imbalance
from unalike.reports.leaderboard_figure import (
    Leaderboard,
    load_leaderboard,
    plot_leaderboard,
)

OWN = (
    "penn94",
    "pokec",
    "arxiv-year",
    "snap-patents",
    "genius",
    "twitch-gamers",
    "wiki",
)
"""The datasets that the paper proposes."""


@dataclass(frozen=True)
class Drawing:
    """How a figure is drawn, and of which datasets unless others are named."""

    draw: Callable[[Mapping[str, Graph]], Any]
    datasets: tuple[str, ...] = ()


FIGURES = {
    "compatibility": Drawing(heat_maps, OWN),
    "degrees": Drawing(degree_plots, OWN),
    "imbalance": Drawing(imbalance),
    "examples": Drawing(example_graphs),
}
"""Figures that are drawn from graphs."""


@dataclass(frozen=True)
class ResultsDrawing:
    """How a figure is drawn from a database of results."""

    load: Callable[[Results, Sequence[str], Query], Leaderboard]
    draw: Callable[[Leaderboard], Any]


RESULTS_FIGURES = {"leaderboard": ResultsDrawing(load_leaderboard, plot_leaderboard)}
"""Figures that are drawn from a database of results."""
