"""Confusion matrix and reliability diagram of `unalike train --figures`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unalike.data.calibration import Reliability, merge_reliability
from unalike.errors import UserError
from unalike.experiments.config import class_names
from unalike.experiments.run import ExperimentOutput
from unalike.files import check_writable, write_errors
from unalike.methods import name_of
from unalike.reports.paper_figures import MAX_ANNOTATED_CLASSES, heat_map
from unalike.reports.plotting import CLASSES, panels, save_figure, with_style


@with_style
def plot_confusion_matrix(title: str, counts: np.ndarray, names: list[str]) -> Any:
    """A heat map of the nodes by class and predicted class, normalised by class."""
    sizes = counts.sum(1, keepdims=True)
    matrix = np.where(sizes > 0, counts / np.maximum(sizes, 1), np.nan)
    side = 2.0 + 0.32 * min(len(matrix), MAX_ANNOTATED_CLASSES)
    figure, (ax,) = panels(1, columns=1, size=(side + 0.8, side))
    image = heat_map(ax, matrix, empty="no nodes")
    if len(matrix) <= MAX_ANNOTATED_CLASSES:
        long = max(map(len, names)) > 3
        ax.set_xticks(range(len(matrix)), names, rotation=45 if long else 0)
        labels = [
            f"{name} ({int(size):,})"
            for name, size in zip(names, sizes[:, 0], strict=True)
        ]
        ax.set_yticks(range(len(matrix)), labels)
    ax.set_title(title)
    ax.set_xlabel("predicted class")
    ax.set_ylabel("class (test nodes)")
    bar = figure.colorbar(image, ax=ax, shrink=0.8, pad=0.03)
    bar.outline.set_visible(False)
    bar.set_label("fraction of the class")
    return figure


@with_style
def plot_reliability_diagram(reliability: Mapping[str, Reliability]) -> Any:
    """Reliability diagrams: accuracy against confidence, a panel for each entry."""
    figure, axes = panels(len(reliability), columns=2, size=(3.2, 3.2))
    for ax, (title, values) in zip(axes, reliability.items(), strict=True):
        plot_reliability(ax, values)
        ax.set_title(f"{title}\nerror {100 * values.error:.1f} %")
    figure.supxlabel("confidence")
    axes[0].set_ylabel("accuracy")
    return figure


def plot_reliability(ax: Any, reliability: Reliability) -> None:
    """Accuracy against confidence as a line, with a histogram of confidence."""
    counts = np.array(reliability.counts)
    edges = np.linspace(0, 1, len(counts) + 1)
    centers, width = (edges[:-1] + edges[1:]) / 2, edges[1]
    fractions = counts / max(1, counts.sum())
    ax.bar(centers, fractions, width * 0.92, color="#dde3e7", label="fraction of nodes")
    ax.plot([0, 1], [0, 1], color="#999999", linewidth=0.8, linestyle="--")
    filled = counts > 0
    confidence = np.array(reliability.confidence)[filled]
    accuracy = np.array(reliability.accuracy)[filled]
    size = 12 + 88 * fractions[filled]
    ax.plot(confidence, accuracy, color=CLASSES[0], linewidth=1.2, label="accuracy")
    ax.scatter(confidence, accuracy, s=size, color=CLASSES[0], zorder=3, clip_on=False)
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.legend(loc="upper left", fontsize=7.5, handlelength=1.2)


def save_prediction_figures(
    output: ExperimentOutput, folder: Path, *, calibrate: bool
) -> list[Path]:
    """Write the confusion matrix and the reliability diagram; returns their paths."""
    splits, dataset = output.calibrations, output.experiment.dataset
    reliability = {"as trained": merge_reliability([one.raw for one in splits])}
    if calibrate:
        calibrated = merge_reliability([one.calibrated for one in splits])
        reliability["calibrated"] = calibrated
    matrices = [one.confusion.numpy() for one in splits]
    matrix = np.sum(matrices, axis=0)
    title = f"{dataset.name}, {name_of(output.method)}"
    names = class_names(dataset) or [*map(str, range(len(matrix)))]
    figures = {
        folder / "confusion.png": plot_confusion_matrix(title, matrix, names),
        folder / "reliability.png": plot_reliability_diagram(reliability),
    }
    with write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for path, figure in figures.items():
        save_figure(figure, path)
    return list(figures)


def check_figure_folder(folder: Path) -> None:
    """Raise if figures cannot be written into a folder, which may not exist yet."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is not a folder for figures.")
    check_writable(folder / "confusion.png")
