"""The paper's figures: compatibility, degrees, imbalance, examples, LINKX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain, combinations, pairwise, product
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from unalike.data.graph import Graph
from unalike.measures import measure
from unalike.measures.edge_statistics import UNDIRECTED, GraphView, degree_histogram
from unalike.reports.plotting import (
    BETWEEN_CLASS,
    CLASSES,
    TEXT_COLOR,
    WITHIN_CLASS,
    panels,
    with_style,
)

# Compatibility matrices.


MAX_ANNOTATED_CLASSES = 10
"""Matrices of up to this number of classes are annotated with their values."""
COLOR_MAP = "Purples"


@with_style
def plot_compatibility(graphs: Mapping[str, Graph]) -> Any:
    """Heat maps of the compatibility matrices of graphs, on a scale from 0 to 1."""
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
    bar.set_label("fraction of the source's edges")
    return figure


def heat_map(ax: Any, matrix: np.ndarray, empty: str = "no edges") -> Any:
    """A heat map of a matrix; rows of NaN are hatched and labelled by `empty`."""
    from matplotlib.patches import Rectangle

    size = len(matrix)
    image = ax.imshow(matrix, cmap=COLOR_MAP, vmin=0, vmax=1)
    for row in np.flatnonzero(np.isnan(matrix).all(1)):
        corner = (-0.5, row - 0.5)
        hatch = Rectangle(corner, size, 1, fill=False, hatch="////", ec="#bbbbbb", lw=0)
        ax.add_patch(hatch)
        box = {"fc": "white", "ec": "none", "pad": 1.5}
        center = ((size - 1) / 2, row)
        ax.text(*center, empty, ha="center", va="center", fontsize=8, bbox=box)
    if size <= MAX_ANNOTATED_CLASSES:
        annotate_values(ax, matrix)
        ax.set_xticks(range(size))
        ax.set_yticks(range(size))
    ax.tick_params(length=0)
    ax.spines[:].set(visible=True, color="#cccccc", linewidth=0.6)
    return image


def annotate_values(ax: Any, matrix: np.ndarray) -> None:
    """Write the value into each cell, in white on dark cells."""
    for (row, column), value in np.ndenumerate(matrix):
        if not np.isnan(value):
            colour = "white" if value > 0.6 else TEXT_COLOR
            text = f"{value:.2f}".lstrip("0") if value < 1 else "1"
            style = {"color": colour, "fontsize": 8, "ha": "center", "va": "center"}
            ax.text(column, row, text, **style)


# Degree distributions.


@with_style
def plot_degree_distributions(graphs: Mapping[str, Graph]) -> Any:
    """Log-log degree distributions of graphs, taken as undirected."""
    figure, axes = panels(len(graphs), columns=3, size=(2.5, 2.2))
    for ax, (name, graph) in zip(axes, graphs.items(), strict=True):
        degrees, counts = degree_histogram(GraphView.of(graph, UNDIRECTED))
        plot_degrees(ax, degrees, counts)
        ax.set_title(name)
    figure.supxlabel("degree in the undirected graph")
    figure.supylabel("nodes of that degree (line: mean)")
    return figure


def plot_degrees(ax: Any, degrees: np.ndarray, counts: np.ndarray) -> None:
    """Every degree as a dot, and the mean over logarithmic bins as a line."""
    mean = (degrees * counts).sum() / counts.sum()
    text = f"mean {mean:,.1f}\nlargest {degrees.max():,}"
    positive = degrees > 0
    if not positive.all():
        text += f"\n{counts[0]:,} without edges"
    degrees, counts = degrees[positive], counts[positive]
    ax.loglog(degrees, counts, ".", ms=3.5, mew=0, color=CLASSES[0], zorder=3)
    ax.loglog(*log_binned(degrees, counts), color=CLASSES[1], lw=2)
    ax.text(0.05, 0.05, text, transform=ax.transAxes, va="bottom", fontsize=8)
    ax.set_xlim(left=0.8)
    ax.minorticks_off()


def log_binned(
    degrees: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean number of nodes per degree over logarithmic bins that are not empty."""
    max_exponent = np.log2(degrees.max() + 1)
    exponents = np.arange(0, max_exponent + 0.5, 0.5)
    edges = np.unique(np.ceil(2**exponents).astype(int))
    nodes, _ = np.histogram(degrees, edges, weights=counts)
    centers = np.sqrt(edges[:-1] * (edges[1:] - 1))
    return centers[nodes > 0], (nodes / np.diff(edges))[nodes > 0]


# Class imbalance.


NODES, EDGE_PROBABILITY, GRAPHS = 100, 0.25, 100
SIZES = (*range(50, 100, 5), 99)
SHOWN = {
    "edge_homophily": ("edge homophily", WITHIN_CLASS, "-"),
    "class_homophily": ("class homophily", BETWEEN_CLASS, "--"),
}


@with_style
def plot_imbalance(_: Mapping[str, Graph]) -> Any:
    """Two homophily measures of random graphs against the size of the larger class.

    Edges are independent of labels: each of 100 graphs joins each pair of 100 nodes
    with probability 1/4. The bands are three standard deviations to each side.
    """
    figure, (ax,) = panels(1, columns=1, size=(4.6, 3.2))
    for name, values in simulate_imbalance().items():
        title, colour, line = SHOWN[name]
        mean, band = values.mean(1), 3 * values.std(1)
        ax.plot(SIZES, mean, line, color=colour, lw=2)
        ax.fill_between(SIZES, mean - band, mean + band, color=colour, alpha=0.2, lw=0)
        ax.text(51, mean[0] + 0.11, title, color=colour, fontsize=10)
    ax.set_xlabel("nodes of 100 in the larger class")
    ax.set_ylabel("homophily of random graphs")
    ax.set_xlim(50, 99)
    ax.set_ylim(-0.05, 1.02)
    ax.set_xticks([*range(50, 100, 10), 99])
    return figure


def simulate_imbalance() -> dict[str, Float[np.ndarray, "sizes graphs"]]:
    """Each measure for each size of the larger class and each random graph."""
    rng = np.random.default_rng(0)
    results = [
        [measure(random_graph(size, rng), only=list(SHOWN)) for _ in range(GRAPHS)]
        for size in SIZES
    ]
    return {
        name: np.array([[values[name] for values in row] for row in results])
        for name in SHOWN
    }


def random_graph(larger: int, rng: np.random.Generator) -> Graph:
    """An Erdős–Rényi graph with two classes, `larger` nodes in the first."""
    pairs = np.array(np.triu_indices(NODES, 1))
    ends = torch.from_numpy(pairs[:, rng.random(pairs.shape[1]) < EDGE_PROBABILITY])
    labels = (torch.arange(NODES) >= larger).long()
    return Graph.from_edges(*ends, num_nodes=NODES, labels=labels, num_classes=2)


# Example graphs.


Positions = Float[np.ndarray, "nodes 2"]

SHAPES = ("o", "s", "^")
"""Marker of each class."""
WITHIN_STYLE = {"color": WITHIN_CLASS, "lw": 1.6, "ls": "-"}
BETWEEN_STYLE = {"color": BETWEEN_CLASS, "lw": 1.2, "ls": (0, (3, 1.5))}


@dataclass(frozen=True, eq=False)
class Example:
    """A small undirected graph with a title and the positions of its nodes."""

    title: str
    pairs: list[tuple[int, int]]
    labels: list[int]
    positions: Positions

    @property
    def graph(self) -> Graph:
        ends, labels = torch.tensor(self.pairs).T, torch.tensor(self.labels)
        return Graph.from_edges(*ends, num_nodes=len(labels), labels=labels)


def examples() -> list[Example]:
    """Graphs with edges within classes, between them, or without regard to them."""
    fives = [*combinations(range(5), 2), *combinations(range(5, 10), 2)]
    cliques = np.concatenate([0.55 * circle(5) - 0.45, 0.55 * circle(5) + 0.45])
    height = np.linspace(-0.9, 0.9, 4)
    sides = [np.column_stack([np.full(4, x), height]) for x in (-0.8, 0.8)]
    bipartite = list(product(range(4), range(4, 8)))
    ring = [(node, (node + 1) % 8) for node in range(8)]
    triangles = [*combinations(range(3), 2), *combinations(range(3, 6), 2)]
    prism = [*triangles, *zip(range(3), range(3, 6), strict=True)]
    nested = np.concatenate([0.4 * circle(3), 1.15 * circle(3)]) - [0, 0.2]
    return [
        Example("only inside classes", fives, [0] * 5 + [1] * 5, cliques),
        Example(
            "only between classes", bipartite, [0] * 4 + [1] * 4, np.concatenate(sides)
        ),
        Example("one edge to each class", ring, [0, 0, 1, 1] * 2, circle(8)),
        Example("one edge to each of three", prism, [0, 1, 2] * 2, nested),
        # The random graphs of the paper are unknown; these seeds give their homophily.
        random_example("random, even classes", 10, 735),
        random_example("random, uneven classes", 16, 122),
    ]


def random_example(title: str, larger: int, seed: int) -> Example:
    """Twenty nodes of two classes with edges that are independent of the classes."""
    rng = np.random.default_rng(seed)
    pairs = [pair for pair in combinations(range(20), 2) if rng.random() < 0.2]
    return Example(title, pairs, [0] * larger + [1] * (20 - larger), circle(20))


def circle(nodes: int) -> Positions:
    """Positions on a circle, the first at the top."""
    angle = np.pi / 2 + 2 * np.pi * np.arange(nodes) / nodes
    return np.column_stack([np.cos(angle), np.sin(angle)])


@with_style
def plot_examples(_: Mapping[str, Graph]) -> Any:
    """Six graphs; edges within a class are solid, edges between classes dashed."""
    figure, axes = panels(6, columns=3, size=(2.3, 2.5))
    for letter, ax, example in zip("abcdef", axes, examples(), strict=True):
        plot_graph(ax, example)
        values = measure(example.graph, only=["edge_homophily", "class_homophily"])
        edge, class_ = values["edge_homophily"], values["class_homophily"]
        ax.set_title(f"({letter}) {example.title}")
        text = f"edge {edge:.2f}     class {class_:.2f}"
        ax.text(0, -1.3, text, ha="center", va="center")
    lines = [ax.plot([], [], **style)[0] for style in (WITHIN_STYLE, BETWEEN_STYLE)]
    names = ["edge inside a class", "edge between classes"]
    figure.legend(lines, names, loc="outside lower center", ncols=2)
    return figure


def plot_graph(ax: Any, example: Example) -> None:
    """Draw the edges and nodes of a graph, without axes."""
    labels, positions = np.array(example.labels), example.positions
    for pair in sorted(map(sorted, example.pairs)):
        within = labels[pair[0]] == labels[pair[1]]
        style = WITHIN_STYLE if within else BETWEEN_STYLE
        ax.plot(*positions[pair].T, zorder=1, **style)
    for label, (colour, shape) in enumerate(zip(CLASSES, SHAPES, strict=True)):
        nodes = positions[labels == label]
        ax.scatter(
            *nodes.T, s=60, c=colour, marker=shape, ec=TEXT_COLOR, lw=0.8, zorder=2
        )
    ax.set_aspect("equal")
    ax.set_xlim(-1.25, 1.25)
    ax.set_ylim(-1.3, 1.2)
    ax.set_axis_off()


# Diagram of LINKX: two MLPs, concatenation, skip connections and a final MLP.


Point = tuple[float, float]

BOXES: dict[str, tuple[Point, str, str]] = {
    "A": ((0.0, 1.0), "A\nadjacency", WITHIN_CLASS),
    "X": ((0.0, -1.0), "X\nfeatures", BETWEEN_CLASS),
    "MLP_A": ((1.6, 1.0), r"$\mathrm{MLP}_A$", WITHIN_CLASS),
    "MLP_X": ((1.6, -1.0), r"$\mathrm{MLP}_X$", BETWEEN_CLASS),
    "concat": ((3.1, 0.0), r"$[h_A; h_X]$", CLASSES[0]),
    "W": ((4.5, 0.0), r"$W$", CLASSES[0]),
    "sum": ((5.7, 0.0), "+", TEXT_COLOR),
    "relu": ((6.8, 0.0), "ReLU", CLASSES[0]),
    "MLP_f": ((8.2, 0.0), r"$\mathrm{MLP}_f$", CLASSES[0]),
    "Y": ((9.6, 0.0), "Y\nclasses", TEXT_COLOR),
}
"""Center, text and colour of each box."""

PATHS = (
    ("A", "MLP_A", "concat"),
    ("X", "MLP_X", "concat"),
    ("concat", "W", "sum", "relu", "MLP_f", "Y"),
)
"""Boxes that arrows join one after the other."""
OUTPUTS = {"MLP_A": "$h_A$", "MLP_X": "$h_X$"}
"""Texts next to the arrows from boxes."""


@with_style
def plot_linkx(_: Mapping[str, Graph]) -> Any:
    """MLP_f(ReLU(W [h_A; h_X] + h_A + h_X)), with h_A = MLP_A(A), h_X = MLP_X(X)."""
    figure, (ax,) = panels(1, columns=1, size=(7.2, 2.5))
    drawn = {
        name: ax.text(
            *center,
            text,
            ha="center",
            va="center",
            bbox={"boxstyle": "round,pad=0.45", "fc": "white", "ec": colour, "lw": 1.4},
            zorder=3,
        )
        for name, (center, text, colour) in BOXES.items()
    }
    for start, end in chain.from_iterable(map(pairwise, PATHS)):
        arrow(ax, drawn, start, end, OUTPUTS.get(start, ""), "arc3")
    for start, output in OUTPUTS.items():  # past W: right, then down or up
        skip = "angle,angleA=0,angleB=90,rad=8"
        arrow(ax, drawn, start, "sum", rf"$+\,{output[1:]}", skip)
    ax.set_xlim(-0.7, 10.2)
    ax.set_ylim(-1.6, 1.6)
    ax.set_axis_off()
    return figure


def arrow(
    ax: Any, drawn: Mapping[str, Any], start: str, end: str, text: str, path: str
) -> None:
    """An arrow between two boxes, with a text above its middle."""
    (x0, y0), (x1, y1) = (BOXES[name][0] for name in (start, end))
    ax.annotate(
        "",
        xy=(x1, y1),
        xytext=(x0, y0),
        arrowprops={
            "arrowstyle": "-|>",
            "color": TEXT_COLOR,
            "lw": 1,
            "patchA": drawn[start].get_bbox_patch(),
            "patchB": drawn[end].get_bbox_patch(),
            "shrinkA": 2,
            "shrinkB": 2,
            "connectionstyle": path,
        },
        zorder=2,
    )
    above = y0 if path != "arc3" else (y0 + y1) / 2
    ax.text((x0 + x1) / 2, above + 0.12, text, ha="center", va="bottom", fontsize=8)


PROPOSED_DATASETS = (
    "penn94",
    "pokec",
    "arxiv-year",
    "snap-patents",
    "genius",
    "twitch-gamers",
    "wiki",
)


@dataclass(frozen=True)
class FigureSpec:
    """The function that draws a figure, and its default datasets."""

    draw: Callable[[Mapping[str, Graph]], Any]
    datasets: tuple[str, ...] = ()


FIGURES = {
    "compatibility": FigureSpec(plot_compatibility, PROPOSED_DATASETS),
    "degrees": FigureSpec(plot_degree_distributions, PROPOSED_DATASETS),
    "imbalance": FigureSpec(plot_imbalance),
    "examples": FigureSpec(plot_examples),
    "linkx": FigureSpec(plot_linkx),
}
"""Figures that are drawn from graphs, or from nothing."""
