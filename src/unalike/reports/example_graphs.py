"""The figure of example graphs: six that show what homophily is and is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations, product
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from unalike.graph import Graph
from unalike.measures import measure
from unalike.reports.canvas import CLASSES, INK, OTHER, SAME, panels, styled

Places = Float[np.ndarray, "nodes 2"]

SHAPES = ("o", "s", "^")
"""Classes differ in shape as well as in colour."""
INSIDE = {"color": SAME, "lw": 1.6, "ls": "-"}
BETWEEN = {"color": OTHER, "lw": 1.2, "ls": (0, (3, 1.5))}


@dataclass(frozen=True, eq=False)
class Example:
    """A small graph, a place for each of its nodes, and what it shows."""

    title: str
    graph: Graph
    places: Places


def cliques() -> Example:
    """Two classes, all edges inside them."""
    pairs = [*combinations(range(5), 2), *combinations(range(5, 10), 2)]
    places = np.concatenate([0.55 * circle(5) - 0.45, 0.55 * circle(5) + 0.45])
    return Example("only inside classes", small(pairs, [0] * 5 + [1] * 5), places)


def bipartite() -> Example:
    """Two classes, all edges between them."""
    height = np.linspace(-0.9, 0.9, 4)
    left, right = (np.column_stack([np.full(4, x), height]) for x in (-0.8, 0.8))
    pairs = list(product(range(4), range(4, 8)))
    graph = small(pairs, [0] * 4 + [1] * 4)
    return Example("only between classes", graph, np.concatenate([left, right]))


def ring() -> Example:
    """Two classes; every node is joined to one node of each."""
    pairs = [(node, (node + 1) % 8) for node in range(8)]
    return Example("one edge to each class", small(pairs, [0, 0, 1, 1] * 2), circle(8))


def prism() -> Example:
    """Three classes; every node is joined to one node of each."""
    inner, outer = list(combinations(range(3), 2)), list(combinations(range(3, 6), 2))
    pairs = [*inner, *outer, *zip(range(3), range(3, 6), strict=True)]
    places = np.concatenate([0.4 * circle(3), 1.15 * circle(3)]) - [0, 0.2]
    return Example("one edge to each of three", small(pairs, [0, 1, 2] * 2), places)


def random_example(title: str, larger: int, seed: int) -> Example:
    """Twenty nodes whose edges know nothing of their two classes."""
    draw = np.random.default_rng(seed)
    pairs = [pair for pair in combinations(range(20), 2) if draw.random() < 0.2]
    labels = [0] * larger + [1] * (20 - larger)
    return Example(title, small(pairs, labels), circle(20))


def small(pairs: list[tuple[int, int]], labels: list[int]) -> Graph:
    """An undirected graph from pairs of nodes."""
    source, target = torch.tensor(pairs).T
    return Graph.from_edges(
        source, target, num_nodes=len(labels), labels=torch.tensor(labels)
    )


def circle(nodes: int) -> Places:
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
