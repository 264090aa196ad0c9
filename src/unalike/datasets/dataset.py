"""Dataset: a named graph with its fixed facts."""

from dataclasses import dataclass

from unalike.datasets.preparation import Preparation
from unalike.datasets.raw import Raw
from unalike.graph import Graph


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
    licence: str
    citation: str
    counts: Counts | None = None
    published: Published = Published()
    preparation: Preparation = Preparation()
    minor: bool = False
    """Lists name it only where its files are at hand."""

    def prepared(self) -> Graph:
        """The graph as the paper's program hands it to a method."""
        return self.preparation.apply(self.load())

    def remarks(self, graph: Graph) -> list[str]:
        expected = self.counts.num_features if self.counts else 0
        if graph.num_features or not expected:
            return []
        return [
            f"{self.name} is without its {expected} features; "
            f"`unalike fetch {self.name}` gets them."
        ]
