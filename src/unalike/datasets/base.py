"""`Dataset`: files, metric, splits, counts; converts raw files once and opens the stored graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Features, Graph
from unalike.data.metrics import ACCURACY, Metric
from unalike.data.split import Split, stack_codes
from unalike.data.store import (
    GraphWriter,
    StoredGraph,
    add_csr,
    atomic_graph_writer,
    graph_counts,
    open_graph,
)
from unalike.datasets.paths import data_root, stored_folders, writable_stored_folder
from unalike.datasets.remote import RemoteFile
from unalike.datasets.splits import SplitLoader, default_random_splits
from unalike.datasets.transforms import SYMMETRISED, Preparation
from unalike.datasets.undirected import undirected_graph
from unalike.errors import UserError
from unalike.files import file_lock, remove_folder
from unalike.progress import NO_PROGRESS, Progress

# Raw: files as their authors gave them, turned into a stored graph when first used.


READER_VERSION = 2
"""Raised when a reader changes, so that stored forms of older ones are made again."""

WRITE_BYTES = 1 << 26
"""Bytes of dense features that are written at a time."""


@dataclass(frozen=True, kw_only=True)
class RawDataset:
    """A graph in files, and how to read it."""

    name: str
    read: Callable[[Path], Graph]
    """Reads the graph from a data root."""
    files: tuple[RemoteFile, ...] = ()
    """What `fetch` downloads; a reader may take other files of the same graph too."""
    alternative_files: tuple[RemoteFile, ...] = ()
    """Files that the reader takes where those that `fetch` downloads are not there."""
    split: SplitLoader = default_random_splits
    metric: Metric = ACCURACY
    data: Path | None = None
    """The data root; None stands for the default one."""

    @property
    def root(self) -> Path:
        return data_root(self.data)

    def load(self) -> Graph:
        """The graph, over mapped arrays."""
        return self.load_or_convert().graph

    def splits(self) -> list[Split]:
        """The splits that belong to the graph."""
        return self.load_or_convert().splits()

    def remarks(self) -> list[str]:
        """What somebody who uses the graph should know about this copy of it."""
        return self.load_or_convert().remarks()

    def gaps(self, graph: Graph) -> list[str]:
        """What a graph lacks that was just read from the files at hand, in words."""
        return []

    def present_files(self) -> dict[str, Path]:
        """The raw files that are there, by their place under the root."""
        places = {file.path: file.find(self.root) for file in self._sources}
        return {path: place for path, place in places.items() if place}

    @property
    def _sources(self) -> tuple[RemoteFile, ...]:
        return self.files + self.alternative_files

    def cached(self, *, half: bool | None = None) -> StoredGraph | None:
        """The stored form, if there is one that fits the raw files."""
        seen = self._fingerprint()
        for place in stored_folders(self.root, self.name):
            if stored := _is_current(place, seen, half):
                return stored
        return None

    def load_or_convert(
        self, *, half: bool | None = None, progress: Progress = NO_PROGRESS
    ) -> StoredGraph:
        """The stored form, made now if need be; `half` asks for 16-bit features."""
        if stored := self.cached(half=half):
            return stored
        place = writable_stored_folder(self.name, self.data)
        with file_lock(place):
            if stored := self.cached(half=half):
                return stored
            progress.stage(f"converting {self.name}", None, "")
            self._convert(place, half=bool(half))
        return open_graph(place)

    def _convert(self, place: Path, *, half: bool) -> None:
        seen = self._fingerprint()
        graph = self.read(self.root)
        splits, origin = self.split(self.root, graph)
        provenance = {
            "reader": READER_VERSION,
            "files": seen,
            "splits": origin,
            "half": half,
            "remarks": self.gaps(graph),
        }
        remove_folder(place)
        with atomic_graph_writer(place) as draft:
            add_csr(draft, "", graph.adjacency)
            _add_features(draft, graph.features, half=half)
            draft.add("labels", graph.labels.numpy())
            draft.add("splits", stack_codes(splits, graph.num_nodes))
            about = {
                "name": self.name,
                **graph_counts(graph),
                "metric": self.metric.name,
            }
            draft.commit({**about, "provenance": provenance})

    def _fingerprint(self) -> dict[str, list[int]]:
        """Size and time of change of the raw files that are there."""
        facts = {path: place.stat() for path, place in self.present_files().items()}
        return {path: [fact.st_size, fact.st_mtime_ns] for path, fact in facts.items()}


def _is_current(
    place: Path, seen: dict[str, list[int]], half: bool | None
) -> StoredGraph | None:
    """The stored graph at a place, unless it was made otherwise or of other files."""
    try:
        stored = open_graph(place)
    except UserError:
        return None
    made: dict[str, Any] = stored.metadata.get("provenance", {})
    used = made.get("files", {})
    fits = made.get("reader") == READER_VERSION
    fits = fits and all(used.get(path) == facts for path, facts in seen.items())
    return stored if fits and half in (None, made.get("half")) else None


def _add_features(draft: GraphWriter, features: Features, *, half: bool) -> None:
    """Put features into a draft; dense ones piece by piece, they may be mapped."""
    if isinstance(features, Adjacency):
        add_csr(draft, "features_", features)
        return
    dtype = np.float16 if half else np.float32
    room = draft.create_memmap("features", dtype, tuple(features.shape))
    step = max(1, WRITE_BYTES // max(1, 4 * features.shape[1]))
    for start in range(0, len(features), step):
        room[start : start + step] = features[start : start + step].numpy()


# Dataset: a named graph with its fixed facts.


MIN_EDGE_SHARE = 0.999
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
class Dataset(RawDataset):
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
    list_only_if_present: bool = False
    """Lists name it only where its files are at hand."""

    def with_root(self, data: Path | None) -> Dataset:
        """The same dataset in another data root."""
        return replace(self, data=data)

    def prepared(self, *, progress: Progress = NO_PROGRESS) -> Graph:
        """The graph as the paper's program hands it to a method."""
        return self.prepare(self.load_or_convert(progress=progress), progress=progress)

    def prepare(
        self, stored: StoredGraph, *, progress: Progress = NO_PROGRESS
    ) -> Graph:
        """Apply the preparation of the dataset to its opened stored graph."""
        if self.preparation == SYMMETRISED:
            return undirected_graph(stored, self.name, self.data, progress=progress)
        return self.preparation.apply(stored.graph)

    def count_mismatches(self, about: dict[str, Any]) -> list[str]:
        """How a stored graph differs from the counts that are known of its files.

        Edges that a file tells twice are merged, so a few less are no difference.
        """
        if self.counts is None:
            return []
        told = asdict(self.counts)
        least = {**told, "num_edges": int(MIN_EDGE_SHARE * told["num_edges"])}
        return [
            f"{key} is {about[key]} instead of {told[key]}"
            for key in told
            if not least[key] <= about[key] <= told[key]
        ]

    def missing_parts(self, graph: Graph) -> list[str]:
        expected = self.counts.num_features if self.counts else 0
        if graph.num_features or not expected:
            return []
        return [
            f"{self.name} is without its {expected} features; "
            f"`unalike fetch {self.name}` gets them."
        ]
