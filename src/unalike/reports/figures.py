"""FIGURES: every figure by its name, and the datasets it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from unalike.graph import Graph
from unalike.reports.degree_plots import degree_plots
from unalike.reports.example_graphs import example_graphs
from unalike.reports.heat_maps import heat_maps
from unalike.reports.imbalance import imbalance

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
