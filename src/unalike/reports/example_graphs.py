"""The figure of example graphs: six small graphs and their homophily."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unalike.graph import Graph
from unalike.measures import measure
from unalike.reports.canvas import CLASSES, INK, OTHER, SAME, panels, styled
from unalike.reports.examples import EXAMPLES, Example

SHAPES = ("o", "s", "^")
"""Classes differ in shape as well as in colour."""
INSIDE = {"color": SAME, "lw": 1.6, "ls": "-"}
BETWEEN = {"color": OTHER, "lw": 1.2, "ls": (0, (3, 1.5))}


@styled
def example_graphs(_: Mapping[str, Graph]) -> Any:
    """Six graphs; edges inside a class are solid, edges between classes dashed."""
    figure, axes = panels(len(EXAMPLES), columns=3, size=(2.3, 2.5))
    for letter, ax, make in zip("abcdef", axes, EXAMPLES, strict=True):
        example = make()
        draw(ax, example)
        found = measure(example.graph, only=["edge_homophily", "class_homophily"])
        edge, class_ = found["edge_homophily"], found["class_homophily"]
        ax.set_title(f"({letter}) {example.title}")
        told = f"edge {edge:.2f}     class {class_:.2f}"
        ax.text(0, -1.3, told, ha="center", va="center")
    lines = [ax.plot([], [], **style)[0] for style in (INSIDE, BETWEEN)]
    names = ["edge inside a class", "edge between classes"]
    figure.legend(lines, names, loc="outside lower center", ncols=2)
    return figure


def draw(ax: Any, example: Example) -> None:
    """Edges below, nodes above, no axes."""
    labels, places = example.graph.labels.tolist(), example.places
    rows = example.graph.adjacency
    for start, end in zip(
        rows.row_of_entry.tolist(), rows.columns.tolist(), strict=True
    ):
        if start < end:
            style = INSIDE if labels[start] == labels[end] else BETWEEN
            ax.plot(*places[[start, end]].T, zorder=1, **style)
    for label, (colour, shape) in enumerate(zip(CLASSES, SHAPES, strict=True)):
        members = places[[place for place, own in enumerate(labels) if own == label]]
        ax.scatter(*members.T, s=60, c=colour, marker=shape, ec=INK, lw=0.8, zorder=2)
    ax.set_aspect("equal")
    ax.set_xlim(-1.25, 1.25)
    ax.set_ylim(-1.3, 1.2)
    ax.set_axis_off()
