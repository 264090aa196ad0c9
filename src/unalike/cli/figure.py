"""`unalike figure`: draw a figure of the paper, or of stored results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import tyro

from unalike import datasets
from unalike.cli.console import DEFAULT_DATABASE, print_notes, print_output
from unalike.data.graph import Graph
from unalike.errors import UserError, lookup
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.selection import SelectionOptions
from unalike.reports.leaderboard_figure import load_leaderboard, plot_leaderboard
from unalike.reports.paper_figures import FIGURES
from unalike.reports.plotting import check_figure_path, save_figure

LEADERBOARD = "leaderboard"
"""The figure that is drawn from a database of results."""


def command(
    figure: Annotated[str, tyro.conf.Positional],
    names: Annotated[tuple[str, ...], tyro.conf.Positional] = (),
    /,
    *,
    out: Path,
    results: str = DEFAULT_DATABASE,
    data: Path | None = None,
    json: bool = False,
) -> None:
    """Draw a figure of the paper, or the leaderboard of stored results.

    Example: unalike figure compatibility texas wisconsin --out compatibility.pdf

    Args:
        figure: What to draw: compatibility, degrees, imbalance, examples, linkx or
            leaderboard.
        names: Datasets, or paths to stored graphs; the paper's own when none is named.
            For the leaderboard: datasets with results; when none is named, the
            non-homophilous ones on which the most methods were run.
        out: File to write; its suffix is the format: .png, .svg or .pdf.
        results: The database that the leaderboard is drawn from.
        data: Folder of the raw files of datasets.
        json: Print one JSON document that says what was drawn.
    """
    lookup({**FIGURES, LEADERBOARD: None}, figure, "figure")
    check_figure_path(out)
    if figure in FIGURES:
        drawn, shown, missing = from_graphs(figure, names, data)
    else:
        drawn, shown, missing = from_results(names, results, data)
    save_figure(drawn, out)
    if missing and not json:
        print_notes(f"left out, no data: {', '.join(missing)}")
    about = {"datasets": shown, "missing": missing}
    document = {"figure": figure, "file": str(out), **about}
    print_output(document, f"wrote {out}", json=json)


def from_graphs(
    figure: str, names: tuple[str, ...], data: Path | None
) -> tuple[Any, list[str], list[str]]:
    """A figure of graphs, the datasets it shows, and those that have no data."""
    drawing = FIGURES[figure]
    if names and not drawing.datasets:
        raise UserError(f"The figure '{figure}' is drawn without datasets; name none.")
    graphs: dict[str, Graph] = {}
    missing: list[str] = []
    for name in names or drawing.datasets:
        try:
            dataset = datasets.find(name, data)
            graphs[dataset.name] = dataset.load()
        except UserError:
            # Graphs that a user names must be there.
            if names:
                raise
            missing.append(name)
        else:
            print_notes(*dataset.remarks())
    if drawing.datasets and not graphs:
        raise UserError(f"No data of {', '.join(missing)}; name datasets you have.")
    return drawing.draw(graphs), list(graphs), missing


def from_results(
    names: tuple[str, ...], url: str, data: Path | None
) -> tuple[Any, list[str], list[str]]:
    """The leaderboard, the datasets it shows, and those without results."""
    query = SelectionOptions(settings="any", data=data)
    with ResultsDatabase.read(url) as results:
        board = load_leaderboard(results, names, query)
    missing = [name for name in names if name not in board.datasets]
    return plot_leaderboard(board), board.datasets, missing
