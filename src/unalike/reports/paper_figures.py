"""The paper's figures: compatibility, degrees, imbalance, example graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, product
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from unalike.data.graph import Graph
from unalike.experiments.database import ResultsDatabase
from unalike.experiments.selection import SelectionOptions
from unalike.measures import measure
from unalike.measures.conventions import UNDIRECTED
from unalike.measures.edge_statistics import GraphView, degree_histogram
from unalike.reports.leaderboard_figure import (
    Leaderboard,
    load_leaderboard,
    plot_leaderboard,
)
from unalike.reports.plotting import (
    BETWEEN_CLASS,
    CLASSES,
    TEXT_COLOR,
    WITHIN_CLASS,
    panels,
    with_style,
)

# The figure of compatibility matrices: where the edges of each class end.


MAX_ANNOTATED_CLASSES = 10
"""Matrices of up to so many classes have their numbers written in."""
COLOURS = "Purples"


@with_style
def plot_compatibility(graphs: Mapping[str, Graph]) -> Any:
    """One heat map for each graph, all on the same scale from 0 to 1."""
    figure, axes = panels(len(graphs), columns=3, size=(2.5, 2.6))
    image = None
    for ax, (name, graph) in zip(axes, graphs.items(), strict=True):
        matrix = np.array(measure(graph, only=["compatibility"])["compatibility"])
        image = heat_map(ax, matrix)
        ax.set_title(name)
    figure.supxlabel("class of the target")
    figure.supylabel("class of the source")
    bar = figure.colorbar(image, ax=list(axes), aspect=40, shrink=0.8, pad=0.02)
    bar.outline.set_visible(False)
    bar.set_label("share of the source's edges")
    return figure


def heat_map(ax: Any, matrix: np.ndarray, empty: str = "no edges") -> Any:
    """One matrix; the row of a class that has nothing is hatched and says so."""
    from matplotlib.patches import Rectangle

    size = len(matrix)
    image = ax.imshow(matrix, cmap=COLOURS, vmin=0, vmax=1)
    for row in np.flatnonzero(np.isnan(matrix).all(1)):
        where = ((-0.5, row - 0.5), size, 1)
        ax.add_patch(Rectangle(*where, fill=False, hatch="////", ec="#bbbbbb", lw=0))
        box = {"fc": "white", "ec": "none", "pad": 1.5}
        middle = ((size - 1) / 2, row)
        ax.text(*middle, empty, ha="center", va="center", fontsize=8, bbox=box)
    if size <= MAX_ANNOTATED_CLASSES:
        write_numbers(ax, matrix)
        ax.set_xticks(range(size))
        ax.set_yticks(range(size))
    ax.tick_params(length=0)
    ax.spines[:].set(visible=True, color="#cccccc", linewidth=0.6)
    return image


def write_numbers(ax: Any, matrix: np.ndarray) -> None:
    """The share in each cell, light on dark cells."""
    for (row, column), share in np.ndenumerate(matrix):
        if not np.isnan(share):
            colour = "white" if share > 0.6 else TEXT_COLOR
            told = f"{share:.2f}".lstrip("0") if share < 1 else "1"
            style = {"color": colour, "fontsize": 8, "ha": "center", "va": "center"}
            ax.text(column, row, told, **style)


# The figure of degree distributions: a few nodes have very many neighbours.


@with_style
def plot_degree_distributions(graphs: Mapping[str, Graph]) -> Any:
    """Nodes by degree on two logarithmic axes, edges read both ways."""
    figure, axes = panels(len(graphs), columns=3, size=(2.5, 2.2))
    for ax, (name, graph) in zip(axes, graphs.items(), strict=True):
        degrees, counts = degree_histogram(GraphView.of(graph, UNDIRECTED))
        plot_degrees(ax, degrees, counts)
        ax.set_title(name)
    figure.supxlabel("degree, edges read both ways")
    figure.supylabel("nodes of that degree (line: mean)")
    return figure


def plot_degrees(ax: Any, degrees: np.ndarray, counts: np.ndarray) -> None:
    """Every degree as a dot, and the mean of each stretch of degrees as a line."""
    some = degrees > 0
    mean = (degrees * counts).sum() / counts.sum()
    ax.loglog(
        degrees[some], counts[some], ".", ms=3.5, mew=0, color=CLASSES[0], zorder=3
    )
    ax.loglog(*log_binned(degrees[some], counts[some]), color=CLASSES[1], lw=2)
    told = f"mean {mean:,.1f}\nlargest {degrees.max():,}"
    if not some.all():
        told += f"\n{counts[0]:,} without edges"
    ax.text(0.05, 0.05, told, transform=ax.transAxes, va="bottom", fontsize=8)
    ax.set_xlim(left=0.8)
    ax.minorticks_off()


def log_binned(
    degrees: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes per degree over stretches that grow with the degree; none is empty."""
    top = np.log2(degrees.max() + 1)
    edges = np.unique(np.ceil(2 ** np.arange(0, top + 0.5, 0.5)).astype(int))
    nodes, _ = np.histogram(degrees, edges, weights=counts)
    middle = np.sqrt(edges[:-1] * (edges[1:] - 1))
    return middle[nodes > 0], (nodes / np.diff(edges))[nodes > 0]


# The figure of the imbalance experiment: a measure that larger classes mislead.


NODES, EDGE_PROBABILITY, GRAPHS = 100, 0.25, 100
SIZES = (*range(50, 100, 5), 99)
SHOWN = {
    "edge_homophily": ("edge homophily", WITHIN_CLASS, "-"),
    "class_homophily": ("class homophily", BETWEEN_CLASS, "--"),
}


@with_style
def plot_imbalance(_: Mapping[str, Graph]) -> Any:
    """Two measures of random graphs as one of two classes grows.

    The edges know nothing of the labels: each of 100 graphs joins each pair of 100
    nodes with probability 1/4. The bands are three standard deviations to each side.
    """
    figure, (ax,) = panels(1, columns=1, size=(4.6, 3.2))
    for name, values in simulate_imbalance().items():
        title, colour, line = SHOWN[name]
        mean, spread = values.mean(1), 3 * values.std(1)
        ax.plot(SIZES, mean, line, color=colour, lw=2)
        ax.fill_between(
            SIZES, mean - spread, mean + spread, color=colour, alpha=0.2, lw=0
        )
        ax.text(51, mean[0] + 0.11, title, color=colour, fontsize=10)
    ax.set_xlabel("nodes of 100 in the larger class")
    ax.set_ylabel("homophily of random graphs")
    ax.set_xlim(50, 99)
    ax.set_ylim(-0.05, 1.02)
    ax.set_xticks([*range(50, 100, 10), 99])
    return figure


def simulate_imbalance(seed: int = 0) -> dict[str, Float[np.ndarray, "sizes graphs"]]:
    """Each measure for each size of the larger class and each random graph."""
    draw = np.random.default_rng(seed)
    found = [
        [measure(random_graph(size, draw), only=list(SHOWN)) for _ in range(GRAPHS)]
        for size in SIZES
    ]
    return {
        name: np.array([[values[name] for values in row] for row in found])
        for name in SHOWN
    }


def random_graph(larger: int, draw: np.random.Generator) -> Graph:
    """A graph whose edges are independent of its two classes."""
    pairs = np.array(np.triu_indices(NODES, 1))
    ends = torch.from_numpy(pairs[:, draw.random(pairs.shape[1]) < EDGE_PROBABILITY])
    labels = (torch.arange(NODES) >= larger).long()
    return Graph.from_edges(*ends, num_nodes=NODES, labels=labels, num_classes=2)


# The figure of example graphs: six that show what homophily is and is not.


Positions = Float[np.ndarray, "nodes 2"]

SHAPES = ("o", "s", "^")
"""Classes differ in shape as well as in colour."""
INSIDE = {"color": WITHIN_CLASS, "lw": 1.6, "ls": "-"}
BETWEEN = {"color": BETWEEN_CLASS, "lw": 1.2, "ls": (0, (3, 1.5))}


@dataclass(frozen=True, eq=False)
class Example:
    """A small graph, a place for each of its nodes, and what it shows."""

    title: str
    graph: Graph
    places: Positions


def cliques() -> Example:
    """Two classes, all edges inside them."""
    pairs = [*combinations(range(5), 2), *combinations(range(5, 10), 2)]
    places = np.concatenate([0.55 * circle(5) - 0.45, 0.55 * circle(5) + 0.45])
    return Example(
        "only inside classes", graph_from_pairs(pairs, [0] * 5 + [1] * 5), places
    )


def bipartite() -> Example:
    """Two classes, all edges between them."""
    height = np.linspace(-0.9, 0.9, 4)
    left, right = (np.column_stack([np.full(4, x), height]) for x in (-0.8, 0.8))
    pairs = list(product(range(4), range(4, 8)))
    graph = graph_from_pairs(pairs, [0] * 4 + [1] * 4)
    return Example("only between classes", graph, np.concatenate([left, right]))


def ring() -> Example:
    """Two classes; every node is joined to one node of each."""
    pairs = [(node, (node + 1) % 8) for node in range(8)]
    return Example(
        "one edge to each class", graph_from_pairs(pairs, [0, 0, 1, 1] * 2), circle(8)
    )


def prism() -> Example:
    """Three classes; every node is joined to one node of each."""
    inner, outer = list(combinations(range(3), 2)), list(combinations(range(3, 6), 2))
    pairs = [*inner, *outer, *zip(range(3), range(3, 6), strict=True)]
    places = np.concatenate([0.4 * circle(3), 1.15 * circle(3)]) - [0, 0.2]
    return Example(
        "one edge to each of three", graph_from_pairs(pairs, [0, 1, 2] * 2), places
    )


def random_example(title: str, larger: int, seed: int) -> Example:
    """Twenty nodes whose edges know nothing of their two classes."""
    draw = np.random.default_rng(seed)
    pairs = [pair for pair in combinations(range(20), 2) if draw.random() < 0.2]
    labels = [0] * larger + [1] * (20 - larger)
    return Example(title, graph_from_pairs(pairs, labels), circle(20))


def graph_from_pairs(pairs: list[tuple[int, int]], labels: list[int]) -> Graph:
    """An undirected graph from pairs of nodes."""
    source, target = torch.tensor(pairs).T
    return Graph.from_edges(
        source, target, num_nodes=len(labels), labels=torch.tensor(labels)
    )


def circle(nodes: int) -> Positions:
    """Places on a circle, the first at the top."""
    angle = np.pi / 2 + 2 * np.pi * np.arange(nodes) / nodes
    return np.column_stack([np.cos(angle), np.sin(angle)])


# The printed random graphs are unknown; these seeds give the printed homophily.
EXAMPLES: tuple[Callable[[], Example], ...] = (
    cliques,
    bipartite,
    ring,
    prism,
    partial(random_example, "random, even classes", 10, 735),
    partial(random_example, "random, uneven classes", 16, 122),
)


@with_style
def plot_examples(_: Mapping[str, Graph]) -> Any:
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
        rows.row_indices.tolist(), rows.indices.tolist(), strict=True
    ):
        if start < end:
            style = INSIDE if labels[start] == labels[end] else BETWEEN
            ax.plot(*places[[start, end]].T, zorder=1, **style)
    for label, (colour, shape) in enumerate(zip(CLASSES, SHAPES, strict=True)):
        members = places[[place for place, own in enumerate(labels) if own == label]]
        ax.scatter(
            *members.T, s=60, c=colour, marker=shape, ec=TEXT_COLOR, lw=0.8, zorder=2
        )
    ax.set_aspect("equal")
    ax.set_xlim(-1.25, 1.25)
    ax.set_ylim(-1.3, 1.2)
    ax.set_axis_off()


# Tables of figures by name: drawn from graphs, or from stored results.


PROPOSED_DATASETS = (
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
class FigureSpec:
    """How a figure is drawn, and of which datasets unless others are named."""

    draw: Callable[[Mapping[str, Graph]], Any]
    datasets: tuple[str, ...] = ()


FIGURES = {
    "compatibility": FigureSpec(plot_compatibility, PROPOSED_DATASETS),
    "degrees": FigureSpec(plot_degree_distributions, PROPOSED_DATASETS),
    "imbalance": FigureSpec(plot_imbalance),
    "examples": FigureSpec(plot_examples),
}
"""Figures that are drawn from graphs."""


@dataclass(frozen=True)
class ResultsDrawing:
    """How a figure is drawn from a database of results."""

    load: Callable[[ResultsDatabase, Sequence[str], SelectionOptions], Leaderboard]
    draw: Callable[[Leaderboard], Any]


RESULTS_FIGURES = {"leaderboard": ResultsDrawing(load_leaderboard, plot_leaderboard)}
"""Figures that are drawn from a database of results."""
