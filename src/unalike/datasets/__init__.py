"""Datasets by name; here only graphs that were stored in a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from unalike.errors import UserError
from unalike.graph import Graph
from unalike.metrics import Metric
from unalike.split import Split
from unalike.store import ABOUT, Stored, open_graph


@dataclass(frozen=True)
class Published:
    """What the paper prints about a dataset."""

    num_nodes: int | None = None
    num_edges: int | None = None
    num_features: int | None = None
    num_classes: int | None = None
    edge_homophily: float | None = None
    class_homophily: float | None = None
    one_hop: float | None = None
    two_hop: float | None = None


@dataclass(frozen=True)
class StoredDataset:
    """A stored graph as a dataset; the paper prints nothing about it."""

    stored: Stored
    published: Published | None = None

    @property
    def name(self) -> str:
        return self.stored.name

    @property
    def metric(self) -> Metric:
        return self.stored.metric

    def load(self) -> Graph:
        return self.stored.load()

    def splits(self) -> list[Split]:
        return self.stored.splits()


def find(name: str, data: Path | None = None) -> StoredDataset:
    """The dataset of a name, or of a path to a stored graph."""
    if (Path(name) / ABOUT).exists():
        return StoredDataset(open_graph(Path(name)))
    raise UserError(f"No dataset '{name}', and no stored graph at that path.")
