"""Matplotlib style, panels, saving figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib import import_module
from pathlib import Path
from statistics import mean
from typing import Any, TypeVar

from unalike.data.graph import Graph
from unalike.errors import UserError

# Canvas: an empty figure in the style that all figures share, and how to keep it.


Draw = Callable[[Mapping[str, Graph]], Any]
"""Graphs by name become a figure of matplotlib."""
Given = TypeVar("Given")

TEXT_COLOR = "#222222"
WITHIN_CLASS, BETWEEN_CLASS = "#e7298a", "#7570b3"
"""The paper's colours: inside a class, and between classes."""
CLASSES = ("#0072b2", "#e69f00", "#009e73")
"""Three colours that people of every colour vision tell apart (Okabe and Ito)."""

STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titlepad": 5,
    "axes.labelsize": 9,
    "figure.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.frameon": False,
    "axes.edgecolor": "#888888",
    "axes.labelcolor": TEXT_COLOR,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": TEXT_COLOR,
    "xtick.color": "#666666",
    "ytick.color": "#666666",
    "xtick.labelcolor": TEXT_COLOR,
    "ytick.labelcolor": TEXT_COLOR,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "unalike",
}

SUFFIXES = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
"""What can be written, with what to leave out so that a figure is always the same."""


def with_style(draw: Callable[[Given], Any]) -> Callable[[Given], Any]:
    """Draw with the shared style, or say what is missing to draw at all."""

    @wraps(draw)
    def drawn(given: Given) -> Any:
        require_matplotlib()
        from matplotlib import rc_context

        with rc_context(STYLE):
            return draw(given)

    return drawn


def require_matplotlib() -> None:
    """Say what is missing, before work is done that could not be drawn."""
    try:
        import_module("matplotlib")
    except ImportError:
        told = "Figures need matplotlib: pip install 'unalike[plots]'."
        raise UserError(told) from None


def panels(count: int, *, columns: int, size: tuple[float, float]) -> tuple[Any, Any]:
    """A figure of `count` panels of a size in inches, in rows, and its axes."""
    from matplotlib.figure import Figure

    columns = min(columns, count)
    rows = -(-count // columns)
    figure = Figure((columns * size[0], rows * size[1]), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for spare in axes[count:]:
        spare.remove()
    return figure, axes[:count]


def check_figure_path(path: Path) -> None:
    """Refuse a file that cannot be written, before any work is done."""
    if path.suffix.lower() not in SUFFIXES:
        raise UserError(
            f"A figure ends in {', '.join(SUFFIXES)}; '{path.name}' does not."
        )
    if not path.absolute().parent.is_dir():
        raise UserError(f"There is no folder {path.absolute().parent} for the figure.")


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure in the format that the end of the file's name asks for."""
    from matplotlib import rc_context

    check_figure_path(path)
    with rc_context(STYLE):
        figure.savefig(path, dpi=200, metadata=SUFFIXES[path.suffix.lower()])


# Bars: the grades of several methods side by side, each split a dot.


@with_style
def plot_scores(grades: Mapping[str, Sequence[float]]) -> Any:
    """A bar for the mean of each method, a dot for each of its splits."""
    figure, (axis,) = panels(1, columns=1, size=(4.6, 0.6 + 0.42 * len(grades)))
    for place, (name, told) in enumerate(grades.items()):
        best = mean(told) == max(mean(other) for other in grades.values())
        colour = CLASSES[0] if best else "#b8c4cc"
        axis.barh(place, mean(told), height=0.6, color=colour)
        axis.plot(told, [place] * len(told), "o", color=TEXT_COLOR, markersize=2.5)
        axis.text(1, place, name, va="center", color="white" if best else TEXT_COLOR)
        axis.text(max(told) + 1.5, place, f"{mean(told):.1f}", va="center")
    axis.set_yticks([])
    axis.set_xlim(0, 100)
    axis.invert_yaxis()
    axis.set_xlabel("test grade, %")
    return figure
