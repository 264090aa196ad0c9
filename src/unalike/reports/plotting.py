"""Matplotlib style, panels and saving of figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from statistics import mean
from typing import Any, ParamSpec

from unalike.errors import UserError, require
from unalike.files import atomic_write, check_writable

Data = ParamSpec("Data")

TEXT_COLOR = "#222222"
WITHIN_CLASS, BETWEEN_CLASS = "#e7298a", "#7570b3"
"""Colours of the paper for edges within a class and between classes."""
CLASSES = ("#0072b2", "#e69f00", "#009e73")
"""Three colours that are safe for colour blindness (Okabe and Ito)."""

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
"""Formats by suffix, with the metadata to omit so that files are reproducible."""


def with_style(plot: Callable[Data, Any]) -> Callable[Data, Any]:
    """Decorate a function that returns a figure, so that it uses the common style."""

    @wraps(plot)
    def plot_with_style(*data: Data.args, **named: Data.kwargs) -> Any:
        require_matplotlib()
        from matplotlib import rc_context

        with rc_context(STYLE):
            return plot(*data, **named)

    return plot_with_style


def require_matplotlib() -> None:
    """Raise if matplotlib is not installed."""
    require("matplotlib", "plots", "Figures need matplotlib")


def panels(count: int, *, columns: int, size: tuple[float, float]) -> tuple[Any, Any]:
    """A figure with rows of panels, and its axes; `size` of a panel is in inches."""
    from matplotlib.figure import Figure

    columns = min(columns, count)
    rows = -(-count // columns)
    figure = Figure((columns * size[0], rows * size[1]), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for unused in axes[count:]:
        unused.remove()
    return figure, axes[:count]


def check_figure_path(path: Path) -> None:
    """Raise if a figure cannot be drawn, by its suffix, or cannot be written."""
    if path.suffix.lower() not in SUFFIXES:
        suffixes = ", ".join(SUFFIXES)
        raise UserError(f"A figure ends in {suffixes}; '{path.name}' does not.")
    if not path.absolute().parent.is_dir():
        raise UserError(f"There is no folder {path.absolute().parent} for the figure.")
    check_writable(path)
    require_matplotlib()


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure in the format of the file suffix."""
    from matplotlib import rc_context

    check_figure_path(path)
    suffix = path.suffix.lower()
    with rc_context(STYLE), atomic_write(path) as partial:
        metadata = SUFFIXES[suffix]
        figure.savefig(partial, dpi=200, metadata=metadata, format=suffix[1:])


@with_style
def plot_scores(scores: Mapping[str, Sequence[float]]) -> Any:
    """A bar chart of the mean score of each method, with a dot for each split."""
    figure, (ax,) = panels(1, columns=1, size=(4.6, 0.6 + 0.42 * len(scores)))
    best_mean = max(map(mean, scores.values()))
    for y, (name, values) in enumerate(scores.items()):
        best = mean(values) == best_mean
        colour = CLASSES[0] if best else "#b8c4cc"
        ax.barh(y, mean(values), height=0.6, color=colour)
        ax.plot(values, [y] * len(values), "o", color=TEXT_COLOR, markersize=2.5)
        ax.text(1, y, name, va="center", color="white" if best else TEXT_COLOR)
        ax.text(max(values) + 1.5, y, f"{mean(values):.1f}", va="center")
    ax.set_yticks([])
    ax.set_xlim(0, 100)
    ax.invert_yaxis()
    ax.set_xlabel("test score, %")
    return figure


@with_style
def plot_importance(importance: dict[str, float]) -> Any:
    """Bars of the importance of hyperparameters, the largest on top."""
    names = [name.replace("_", " ") for name in reversed(importance)]
    size = (4.2, 0.9 + 0.3 * len(names))
    figure, (ax,) = panels(1, columns=1, size=size)
    ax.barh(names, [*reversed(importance.values())])
    ax.set_xlabel("share of the variance of the validation score")
    return figure
