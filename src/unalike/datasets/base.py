"""Datasets: declared files, metric, splits and counts, converted once and stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unalike.data.graph import Graph
from unalike.data.store import (
    StoredGraph,
    add_csr,
    add_nodes,
    atomic_graph_writer,
    graph_counts,
)
from unalike.datasets.remote import RemoteFile
from unalike.datasets.splits import SplitLoader, default_random_splits
from unalike.datasets.stored import StoredSource, find_stored, store_once
from unalike.datasets.transforms import SYMMETRISED, Preparation
from unalike.datasets.undirected import undirected_graph
from unalike.files import remove_folder
from unalike.progress import NO_PROGRESS, Progress
from unalike.system import data_root

READER_VERSION = 2
"""Increased when a reader changes, so that older stored graphs are converted again."""

MIN_EDGE_SHARE = 0.999
"""The smallest fraction of the edges of a file that remains without duplicates."""


@dataclass(frozen=True)
class Counts:
    """Exact numbers of nodes, edges, features and classes in the raw files."""

    num_nodes: int
    num_edges: int
    num_features: int
    num_classes: int

    def published(self, *homophily: float) -> Published:
        """These counts, and edge, class, one-hop and two-hop homophily, published."""
        return Published(*astuple(self), *homophily)


@dataclass(frozen=True)
class Published:
    """Published statistics of a dataset; None where there is no published value.

    For the datasets of the LINKX paper these are its printed numbers, which follow
    several conventions; `Counts` has the numbers of the files. For other datasets they
    come from the paper that introduced them, or were measured where no paper has them.
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
class Dataset(StoredSource):
    """A named graph in raw files that is converted to a stored graph on first use."""

    read: Callable[[Path], Graph]
    """Reads the graph from a data root."""
    files: tuple[RemoteFile, ...] = ()
    """Files that `fetch` downloads."""
    alternative_files: tuple[RemoteFile, ...] = ()
    """Files that the reader uses instead of the first of `files`."""
    features_file: RemoteFile | None = None
    """The file without which the reader gives a graph without features."""
    split: SplitLoader = default_random_splits
    about: str
    label_meaning: str
    directed: bool
    """Each edge is stored once, in the direction of its file, whatever it means there.

    Published measures use the edges of the file; `prepared` gives both directions.
    """
    licence: str = "none known"
    citation: str
    counts: Counts | None = None
    published: Published = Published()
    preparation: Preparation = SYMMETRISED
    list_only_if_present: bool = False
    """List it only if its files are present."""

    @property
    def root(self) -> Path:
        return data_root(self.data)

    def present_files(self) -> dict[str, Path]:
        """The raw files that exist, by their path under the root."""
        files = self.files + self.alternative_files
        return {file.path: path for file in files if (path := file.find(self.root))}

    def missing_files(self) -> list[str]:
        """Paths of the raw files without which the reader fails."""
        replaced = any(file.find(self.root) for file in self.alternative_files)
        return [
            file.path
            for file in self.files[replaced:]
            if file != self.features_file and not file.find(self.root)
        ]

    def has_features_file(self) -> bool:
        """Whether the file of features is there, or none is needed."""
        return self.features_file is None or bool(self.features_file.find(self.root))

    def cached(self, *, half: bool | None = None) -> StoredGraph | None:
        """The stored graph, if this reader made it from the same files."""
        fingerprint = self._fingerprint()

        def is_current(provenance: dict[str, Any]) -> bool:
            return (
                provenance.get("reader") == READER_VERSION
                and fingerprint.items() <= provenance.get("files", {}).items()
                and half in (None, provenance.get("half"))
            )

        return find_stored(self.name, self.data, is_current)

    def open_stored(
        self, *, half: bool | None = None, progress: Progress = NO_PROGRESS
    ) -> StoredGraph:
        """The stored graph, converted if needed; with `half`, features have 16 bits."""

        def convert(folder: Path) -> None:
            progress.stage(f"converting {self.name}", None, "")
            self._convert(folder, half=bool(half))

        return store_once(self.name, self.data, lambda: self.cached(half=half), convert)

    def _convert(self, folder: Path, *, half: bool) -> None:
        fingerprint = self._fingerprint()
        graph = self.read(self.root)
        splits, origin = self.split(self.root, graph)
        lacking = self.counts.num_features if self.counts else 0
        remark = (
            f"{self.name} is without its {lacking} features; "
            f"`unalike fetch {self.name}` gets them."
        )
        provenance = {
            "reader": READER_VERSION,
            "files": fingerprint,
            "splits": origin,
            "half": half,
            "remarks": [remark] if lacking and not graph.num_features else [],
        }
        remove_folder(folder)
        with atomic_graph_writer(folder) as writer:
            add_csr(writer, "", graph.adjacency)
            add_nodes(writer, graph, splits, np.float16 if half else np.float32)
            metadata = {"name": self.name, **graph_counts(graph)}
            metadata |= {"metric": self.metric.name, "provenance": provenance}
            writer.commit(metadata)

    def _fingerprint(self) -> dict[str, list[int]]:
        """Size and modification time of each raw file that exists."""
        stats = {name: path.stat() for name, path in self.present_files().items()}
        return {name: [stat.st_size, stat.st_mtime_ns] for name, stat in stats.items()}

    def prepare(
        self, stored: StoredGraph, *, progress: Progress = NO_PROGRESS
    ) -> Graph:
        """The opened stored graph as the paper's code passes it to a method."""
        if self.preparation == SYMMETRISED:
            return undirected_graph(stored, self.name, self.data, progress=progress)
        return self.preparation.apply(stored.graph)

    def count_mismatches(self, metadata: dict[str, Any]) -> list[str]:
        """Differences from the known counts; merged duplicate edges are none."""
        if self.counts is None:
            return []
        expected = asdict(self.counts)
        minimum = {**expected, "num_edges": int(MIN_EDGE_SHARE * expected["num_edges"])}
        return [
            f"{key} is {metadata[key]} instead of {expected[key]}"
            for key in expected
            if not minimum[key] <= metadata[key] <= expected[key]
        ]
