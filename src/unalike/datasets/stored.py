"""Sources whose graphs are stored once, in the data root or in the cache."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from unalike.data.graph import Graph
from unalike.data.metrics import ACCURACY, Metric
from unalike.data.split import Split
from unalike.data.store import StoredGraph, open_graph
from unalike.errors import UserError
from unalike.files import file_lock
from unalike.progress import NO_PROGRESS, Progress
from unalike.system import data_root, stored_folders, writable_stored_folder

Source = TypeVar("Source", bound="StoredSource")


@dataclass(frozen=True, kw_only=True)
class StoredSource(ABC):
    """A source whose graph is stored when it is first used."""

    name: str
    metric: Metric = ACCURACY
    data: Path | None = None
    """The data root; None is the default one."""

    @abstractmethod
    def open_stored(self, *, progress: Progress = NO_PROGRESS) -> StoredGraph:
        """The stored graph, made if needed."""

    @abstractmethod
    def prepare(
        self, stored: StoredGraph, *, progress: Progress = NO_PROGRESS
    ) -> Graph:
        """The graph of `open_stored` as methods get it."""

    def load(self) -> Graph:
        """The graph over memory-mapped arrays."""
        return self.open_stored().graph

    def prepared(self, *, progress: Progress = NO_PROGRESS) -> Graph:
        """The graph as methods get it."""
        return self.prepare(self.open_stored(progress=progress), progress=progress)

    def splits(self) -> list[Split]:
        """The train, valid and test splits."""
        return self.open_stored().splits()

    def remarks(self) -> list[str]:
        """Notes for users about this copy of the graph, such as missing features."""
        return self.open_stored().remarks()

    def with_root(self: Source, data: Path | None) -> Source:
        """The same source in another data root."""
        return replace(self, data=data)


def find_stored(
    name: str, data: Path | None, is_current: Callable[[dict[str, Any]], bool]
) -> StoredGraph | None:
    """The stored graph of a name whose provenance is current, if there is one."""
    for folder in stored_folders(data_root(data), name):
        with suppress(UserError):
            stored = open_graph(folder)
            if is_current(stored.metadata.get("provenance", {})):
                return stored
    return None


def store_once(
    name: str,
    data: Path | None,
    find: Callable[[], StoredGraph | None],
    write: Callable[[Path], object],
) -> StoredGraph:
    """The graph that `find` gives, else the one that `write` writes under a lock."""
    if stored := find():
        return stored
    folder = writable_stored_folder(name, data)
    with file_lock(folder):
        if stored := find():
            return stored
        write(folder)
    return open_graph(folder)
