"""`unalike figure`: a figure of the paper, drawn anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from unalike import datasets
from unalike.cli.console import OUT, print_json, print_notes
from unalike.data.graph import Graph
from unalike.errors import UserError, lookup
from unalike.reports.paper_figures import FIGURES
from unalike.reports.plotting import check_figure_path, save_figure


def command(
    figure: Annotated[str, tyro.conf.Positional],
    names: Annotated[tuple[str, ...], tyro.conf.Positional] = (),
    /,
    *,
    out: Path,
    data: Path | None = None,
    json: bool = False,
) -> None:
    """Draw a figure of the paper.

    Example: unalike figure compatibility texas wisconsin --out compatibility.pdf

    Args:
        figure: What to draw: compatibility, degrees, imbalance or examples.
        names: Datasets, or paths to stored graphs; the paper's own when none is named.
        out: File to write; its end says how: .png, .svg or .pdf.
        data: Folder of the raw files of datasets.
        json: Print one JSON document that says what was drawn.
    """
    drawing = lookup(FIGURES, figure, "figure")
    check_figure_path(out)
    if names and not drawing.datasets:
        raise UserError(f"The figure '{figure}' is drawn without datasets; name none.")
    graphs, missing, remarks = load_graphs(names, drawing.datasets, data)
    print_notes(remarks)
    save_figure(drawing.draw(graphs), out)
    if json:
        drawn = {"datasets": list(graphs), "missing": missing}
        print_json({"figure": figure, "file": str(out), **drawn})
        return
    if missing:
        print_notes([f"left out, no data: {', '.join(missing)}"])
    OUT.print(f"wrote {out}", soft_wrap=True, markup=False)


def load_graphs(
    names: tuple[str, ...], usual: tuple[str, ...], data: Path | None
) -> tuple[dict[str, Graph], list[str], list[str]]:
    """The graphs that are there, those that are not, and what is to be remarked.

    Graphs that a user names must be there.
    """
    graphs: dict[str, Graph] = {}
    missing: list[str] = []
    remarks: list[str] = []
    for name in names or usual:
        try:
            dataset = datasets.find(name, data)
            graphs[dataset.name] = dataset.load()
            remarks += dataset.remarks()
        except UserError:
            if names:
                raise
            missing.append(name)
    if usual and not graphs:
        raise UserError(f"No data of {', '.join(missing)}; name datasets you have.")
    return graphs, missing, remarks
