"""Directions: which ends of a node's edges a row-wise method looks at."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from unalike.adjacency import Adjacency
from unalike.graph import Graph

Directions = Literal["out", "in", "both", "undirected"]

ROWS: dict[Directions, Callable[[Adjacency], Adjacency]] = {
    "out": lambda rows: rows,
    "in": lambda rows: rows.transposed,
    "both": lambda rows: rows.beside(rows.transposed),
    "undirected": lambda rows: rows.symmetric(),
}


def look(graph: Graph, directions: Directions) -> Graph:
    """The graph with rows that hold the wanted ends; `both` has a column for each."""
    return replace(graph, adjacency=ROWS[directions](graph.adjacency))
