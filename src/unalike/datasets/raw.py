"""Raw: files as their authors gave them, turned into a stored graph when first used."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unalike.adjacency import Adjacency
from unalike.datasets.lock import alone
from unalike.datasets.remote import Remote
from unalike.datasets.root import data_root, stored_folder, stored_places
from unalike.datasets.splits import Splitter, at_random
from unalike.draft import Draft, drafting
from unalike.errors import UserError
from unalike.features import Features
from unalike.graph import Graph
from unalike.metrics import ACCURACY, Metric
from unalike.progress import SILENT, Progress
from unalike.split import Split, to_matrix
from unalike.store import Stored, add_rows, counts, open_graph

READER = 2
"""Raised when a reader changes, so that stored forms of older ones are made again."""

CHUNK = 1 << 26
"""Bytes of dense features that are written at a time."""


@dataclass(frozen=True, kw_only=True)
class Raw:
    """A graph in files, and how to read it."""

    name: str
    read: Callable[[Path], Graph]
    """Reads the graph from a data root."""
    files: tuple[Remote, ...] = ()
    """What `fetch` downloads; a reader may take other files of the same graph too."""
    also_reads: tuple[Remote, ...] = ()
    """Files that the reader takes where those that `fetch` downloads are not there."""
    split: Splitter = at_random
    metric: Metric = ACCURACY
    data: Path | None = None
    """The data root; None stands for the default one."""

    @property
    def root(self) -> Path:
        return data_root(self.data)

    def load(self) -> Graph:
        """The graph, over mapped arrays."""
        return self.stored().graph

    def splits(self) -> list[Split]:
        """The splits that belong to the graph."""
        return self.stored().splits()

    def remarks(self) -> list[str]:
        """What somebody who uses the graph should know about this copy of it."""
        return self.stored().remarks()

    def gaps(self, graph: Graph) -> list[str]:
        """What a graph lacks that was just read from the files at hand, in words."""
        return []

    def found(self) -> dict[str, Path]:
        """The raw files that are there, by their place under the root."""
        places = {file.path: file.find(self.root) for file in self._sources}
        return {path: place for path, place in places.items() if place}

    @property
    def _sources(self) -> tuple[Remote, ...]:
        return self.files + self.also_reads

    def ready(self, *, half: bool | None = None) -> Stored | None:
        """The stored form, if there is one that fits the raw files."""
        seen = self._fingerprint()
        for place in stored_places(self.root, self.name):
            if stored := _fitting(place, seen, half):
                return stored
        return None

    def stored(
        self, *, half: bool | None = None, progress: Progress = SILENT
    ) -> Stored:
        """The stored form, made now if need be; `half` asks for 16-bit features."""
        if stored := self.ready(half=half):
            return stored
        place = stored_folder(self.name, self.data)
        with alone(place):
            if stored := self.ready(half=half):
                return stored
            progress.stage(f"converting {self.name}", None, "")
            self._convert(place, half=bool(half))
        return open_graph(place)

    def _convert(self, place: Path, *, half: bool) -> None:
        seen = self._fingerprint()
        graph = self.read(self.root)
        splits, origin = self.split(self.root, graph)
        provenance = {
            "reader": READER,
            "files": seen,
            "splits": origin,
            "half": half,
            "remarks": self.gaps(graph),
        }
        retire(place)
        with drafting(place) as draft:
            add_rows(draft, "", graph.adjacency)
            _add_features(draft, graph.features, half=half)
            draft.add("labels", graph.labels.numpy())
            draft.add("splits", to_matrix(splits, graph.num_nodes))
            about = {"name": self.name, **counts(graph), "metric": self.metric.name}
            draft.commit({**about, "provenance": provenance})

    def _fingerprint(self) -> dict[str, list[int]]:
        """Size and time of change of the raw files that are there."""
        facts = {path: place.stat() for path, place in self.found().items()}
        return {path: [fact.st_size, fact.st_mtime_ns] for path, fact in facts.items()}


def _fitting(
    place: Path, seen: dict[str, list[int]], half: bool | None
) -> Stored | None:
    """The stored graph at a place, unless it was made otherwise or of other files."""
    try:
        stored = open_graph(place)
    except UserError:
        return None
    made: dict[str, Any] = stored.about.get("provenance", {})
    used = made.get("files", {})
    fits = made.get("reader") == READER
    fits = fits and all(used.get(path) == facts for path, facts in seen.items())
    return stored if fits and half in (None, made.get("half")) else None


def retire(place: Path) -> None:
    """Move an outdated stored form out of the way, then remove it."""
    if place.exists():
        place.rename(place.with_name(f".{place.name}.{os.getpid()}.stale"))
    for stale in place.parent.glob(f".{place.name}.*.stale"):
        shutil.rmtree(stale, ignore_errors=True)


def _add_features(draft: Draft, features: Features, *, half: bool) -> None:
    """Put features into a draft; dense ones piece by piece, they may be mapped."""
    if isinstance(features, Adjacency):
        add_rows(draft, "features_", features)
        return
    dtype = np.float16 if half else np.float32
    room = draft.reserve("features", dtype, tuple(features.shape))
    step = max(1, CHUNK // max(1, 4 * features.shape[1]))
    for start in range(0, len(features), step):
        room[start : start + step] = features[start : start + step].numpy()
