"""Dataset: a named graph with its fixed facts."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from unalike.datasets.both_ways import symmetric_graph
from unalike.datasets.preparation import SYMMETRISED, Preparation
from unalike.datasets.raw import Raw
from unalike.graph import Graph
from unalike.progress import SILENT, Progress

MERGED = 0.999
"""The least share of the edges of a file that remains when repeats are merged."""


@dataclass(frozen=True)
class Counts:
    """What reading the real files gives, exactly."""

    num_nodes: int
    num_edges: int
    num_features: int
    num_classes: int


@dataclass(frozen=True, kw_only=True)
class Published:
    """What is told of a dataset; None where nothing is.

    For the paper's datasets these are its printed numbers. They follow several
    conventions: see `Counts` for what the files hold. For the others they come from
    the paper that introduced them, or were measured where none prints them.
    """

    num_nodes: int | None = None
    num_edges: int | None = None
    num_features: int | None = None
    num_classes: int | None = None
    edge_homophily: float | None = None
    class_homophily: float | None = None
    one_hop: float | None = None
    """Node homophily."""
    two_hop: float | None = None
    """Node homophily over the neighbours at distance two."""


@dataclass(frozen=True, kw_only=True)
class Dataset(Raw):
    """A named graph: its files, its metric, its splits, and what is known of it."""

    about: str
    label_meaning: str
    directed: bool
    """Each edge is stored once, in the direction of its file, whatever it means there.

    The measures that papers print follow the file; `prepared` gives both directions.
    """
    licence: str
    citation: str
    counts: Counts | None = None
    published: Published = Published()
    preparation: Preparation = SYMMETRISED
    minor: bool = False
    """Lists name it only where its files are at hand."""

    def at(self, data: Path | None) -> Dataset:
        """The same dataset in another data root."""
        return replace(self, data=data)

    def prepared(self, *, progress: Progress = SILENT) -> Graph:
        """The graph as the paper's program hands it to a method."""
        stored = self.stored(progress=progress)
        if self.preparation == SYMMETRISED:
            return symmetric_graph(stored, self.name, self.data, progress=progress)
        return self.preparation.apply(stored.graph)

    def differences(self, about: dict[str, Any]) -> list[str]:
        """How a stored graph differs from the counts that are known of its files.

        Edges that a file tells twice are merged, so a few less are no difference.
        """
        if self.counts is None:
            return []
        told = asdict(self.counts)
        least = {**told, "num_edges": int(MERGED * told["num_edges"])}
        return [
            f"{key} is {about[key]} instead of {told[key]}"
            for key in told
            if not least[key] <= about[key] <= told[key]
        ]

    def gaps(self, graph: Graph) -> list[str]:
        expected = self.counts.num_features if self.counts else 0
        if graph.num_features or not expected:
            return []
        return [
            f"{self.name} is without its {expected} features; "
            f"`unalike fetch {self.name}` gets them."
        ]
