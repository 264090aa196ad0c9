"""Confusion matrix and reliability diagram of `train --figures`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unalike.data.calibration import Reliability
from unalike.errors import UserError
from unalike.experiments.config import class_names
from unalike.experiments.evaluation import pooled_confusion, pooled_reliability
from unalike.experiments.run import ExperimentOutput
from unalike.methods import name_of
from unalike.reports.paper_figures import MAX_ANNOTATED_CLASSES, heat_map
from unalike.reports.plotting import CLASSES, panels, save_figure, with_style

# The figure of confusion: which classes are taken for which.


@dataclass(frozen=True, eq=False)
class ConfusionData:
    """Nodes by their class (row) and their answer (column), and what classes are."""

    title: str
    counts: np.ndarray
    names: list[str]


@with_style
def plot_confusion_matrix(told: ConfusionData) -> Any:
    """A heat map of the share of each class that got each answer."""
    sizes = told.counts.sum(1, keepdims=True)
    matrix = np.where(sizes > 0, told.counts / np.maximum(sizes, 1), np.nan)
    side = 2.0 + 0.32 * min(len(matrix), MAX_ANNOTATED_CLASSES)
    figure, (ax,) = panels(1, columns=1, size=(side + 0.8, side))
    image = heat_map(ax, matrix, empty="no nodes")
    if len(matrix) <= MAX_ANNOTATED_CLASSES:
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


# The figure of reliability: how often answers are right, by how sure they are.


@with_style
def plot_reliability_diagram(found: Mapping[str, Reliability]) -> Any:
    """A panel for each; what lies on the diagonal can be taken at its word."""
    figure, axes = panels(len(found), columns=2, size=(3.2, 3.2))
    for ax, (title, told) in zip(axes, found.items(), strict=True):
        reliability_panel(ax, told)
        ax.set_title(f"{title}\nerror {100 * told.error:.1f} %")
    figure.supxlabel("how sure an answer is")
    axes[0].set_ylabel("how often it is right")
    return figure


def reliability_panel(ax: Any, told: Reliability) -> None:
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


# Answers: the figures of what a method said of the test nodes.


def save_prediction_figures(
    output: ExperimentOutput, folder: Path, *, calibrate: bool
) -> list[Path]:
    """Which classes are confused, and how far certainty can be trusted; the files."""
    splits = output.calibrations
    reliable = {"as trained": pooled_reliability(splits, calibrated=False)}
    if calibrate:
        reliable["calibrated"] = pooled_reliability(splits, calibrated=True)
    dataset, matrix = output.experiment.dataset, pooled_confusion(splits).numpy()
    title = f"{dataset.name}, {name_of(output.method)}"
    names = class_names(dataset) or [*map(str, range(len(matrix)))]
    drawn = {
        folder / "confusion.png": plot_confusion_matrix(
            ConfusionData(title, matrix, names)
        ),
        folder / "reliability.png": plot_reliability_diagram(reliable),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for file, figure in drawn.items():
        save_figure(figure, file)
    return list(drawn)


def check_figure_folder(folder: Path) -> None:
    """Refuse a folder that is something else, before any work is done."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is not a folder for figures.")
