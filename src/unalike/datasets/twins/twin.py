"""Configuration of a synthetic graph (degree-corrected block model), save and load."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Graph
from unalike.data.metrics import ACCURACY, Metric
from unalike.data.split import Split, random_splits, stack_codes
from unalike.data.store import (
    GraphWriter,
    StoredGraph,
    add_csr,
    atomic_graph_writer,
    open_graph,
)
from unalike.datasets.paths import data_root, stored_folders, writable_stored_folder
from unalike.datasets.twins.features import Gaussian, OneHot
from unalike.datasets.twins.generator import DegreeDistribution, apportion, sample_nodes
from unalike.datasets.undirected import undirected_graph
from unalike.errors import UserError
from unalike.files import file_lock
from unalike.progress import NO_PROGRESS, Progress

GENERATOR_VERSION = 1
"""Counts up when the same configuration comes to give another graph."""

Numbers: TypeAlias = tuple[int | float, ...]


@dataclass(frozen=True, kw_only=True)
class Twin:
    """The configuration of a generated graph; the same one gives the same graph.

    An edge from u of class k to v of class l comes with a rate proportional to
    degree(u) attraction(v) edges[k][l] liking(u, l) liking(v, k): a degree-corrected
    block model (Karrer and Newman 2011) in which each node has a taste of its own.
    """

    name: str
    num_nodes: int
    num_edges: int
    sizes: Numbers
    """Nodes of each class, in any unit."""
    edges: tuple[Numbers, ...]
    """Edges from each class to each, in any unit; symmetric for an undirected graph."""
    features: Gaussian | OneHot
    leaving: DegreeDistribution
    """The degrees; in a directed graph, of the edges that leave a node."""
    arriving: DegreeDistribution | None = None
    """The degrees of the edges that arrive; None makes the graph undirected."""
    monophily: float = 0.2
    """The correlation between the classes of two neighbours of a node."""
    unlabelled: bool = False
    """Are the nodes of the last class those without a label?"""
    metric: Metric = ACCURACY
    seed: int = 0
    basis: str = ""
    """Where the numbers are from."""
    symmetrised: bool = True
    """Are methods given every edge both ways?"""
    data: Path | None = None
    """The data root; None stands for the default one."""

    def __post_init__(self) -> None:
        table = np.array(self.edges, float)
        problems = {
            f"its {len(self.sizes)} classes need a square table of edges": (
                table.shape != 2 * (len(self.sizes),)
            ),
            "without arriving edges, its table of edges must be symmetric": (
                not self.directed and not np.array_equal(table, table.T)
            ),
            f"its monophily {self.monophily} is not from 0 up to 1": (
                not 0 <= self.monophily < 1
            ),
            f"its seed {self.seed} is negative": self.seed < 0,
        }
        for problem, found in problems.items():
            if found:
                raise UserError(f"The twin '{self.name}' cannot be: {problem}.")

    @property
    def directed(self) -> bool:
        return self.arriving is not None

    @property
    def num_classes(self) -> int:
        return len(self.sizes) - self.unlabelled

    @property
    def edge_homophily(self) -> float:
        """The share of edges inside a class, among those between labelled nodes."""
        labelled = np.array(self.edges, float)[: self.num_classes, : self.num_classes]
        return float(labelled.trace() / labelled.sum())

    def scaled(self, num_nodes: int) -> Twin:
        """The same twin with another number of nodes and the same mean degree."""
        return replace(
            self,
            name=f"{self.name}-{num_nodes}",
            num_nodes=num_nodes,
            num_edges=round(self.num_edges * num_nodes / self.num_nodes),
        )

    def with_root(self, data: Path | None) -> Twin:
        """The same twin in another data root."""
        return replace(self, data=data)

    def load(self) -> Graph:
        """The graph, mapped; it is generated where that was not done before."""
        return self.load_or_generate().graph

    def prepared(self, *, progress: Progress = NO_PROGRESS) -> Graph:
        """The graph as methods are given it."""
        return self.prepare(self.load_or_generate(progress=progress), progress=progress)

    def prepare(
        self, stored: StoredGraph, *, progress: Progress = NO_PROGRESS
    ) -> Graph:
        """Make the opened stored graph undirected where the twin asks for it."""
        if not self.symmetrised:
            return stored.graph
        return undirected_graph(stored, self._folder_name, self.data, progress=progress)

    def splits(self) -> list[Split]:
        """Five random splits: half of the labels to learn from, a quarter to test."""
        return self.load_or_generate().splits()

    def remarks(self) -> list[str]:
        """Nothing: a generated graph lacks nothing."""
        return []

    @property
    def _folder_name(self) -> str:
        """The name of its folder, which changes with the configuration."""
        return f"{self.name}-{self.digest}"

    def cached(self) -> StoredGraph | None:
        """The stored graph, if it was generated before."""
        places = stored_folders(data_root(self.data), self._folder_name)
        return next((open_graph(place) for place in places if place.exists()), None)

    def load_or_generate(self, *, progress: Progress = NO_PROGRESS) -> StoredGraph:
        """The stored graph, generated now if need be."""
        if stored := self.cached():
            return stored
        folder = writable_stored_folder(self._folder_name, self.data)
        with file_lock(folder):
            return self.cached() or self.save(folder, progress=progress)

    def save(self, folder: Path, *, progress: Progress = NO_PROGRESS) -> StoredGraph:
        """Generate the graph into a new folder."""
        with atomic_graph_writer(folder) as draft:
            groups = self._write_edges(draft, progress)
            labels = np.where(groups < self.num_classes, groups, -1)
            draft.add("labels", labels)
            splits = random_splits(torch.from_numpy(labels), count=5, seed=0)
            draft.add("splits", stack_codes(splits, self.num_nodes))
            known = self._feature_classes(groups)
            self.features.write(draft, known, self.seed, progress)
            draft.commit(self._about())
        return open_graph(folder)

    def _write_edges(self, draft: GraphWriter, progress: Progress) -> np.ndarray:
        """Put the rows into a draft; returns the class of each node."""
        # The compiler is slow to import, and the facts of a twin need none.
        from unalike.datasets.twins.generator import sample_edges, sample_target_classes

        edges = apportion(np.ravel(self.edges), self.num_edges)
        edges = edges.reshape(len(self.sizes), len(self.sizes))
        society = sample_nodes(
            apportion(np.array(self.sizes), self.num_nodes),
            edges,
            leaving=self.leaving,
            arriving=self.arriving,
            monophily=self.monophily,
            random=np.random.default_rng([self.seed, 0]),
        )
        counts = sample_target_classes(society, edges, seed=2 * self.seed)
        drawing = partial(
            sample_edges, society, counts, seed=2 * self.seed + 1, progress=progress
        )
        shape = (self.num_edges,)
        if self.directed:
            columns = np.asarray(draft.create_memmap("columns", np.int32, shape))
            draft.add("starts", drawing(columns, pairs=False))
        else:
            columns = np.empty(shape, np.int32)
            starts = drawing(columns, pairs=True)
            ends = (torch.from_numpy(starts), torch.from_numpy(columns))
            add_csr(draft, "", Adjacency(*ends, self.num_nodes).to_undirected())
        return society.classes

    def _feature_classes(self, groups: np.ndarray) -> np.ndarray:
        """The class of each node, drawn by the sizes where there is no label."""
        sizes = np.cumsum(self.sizes[: self.num_classes])
        random = np.random.default_rng([self.seed, 1])
        drawn = np.searchsorted(sizes, random.random(len(groups)) * sizes[-1])
        return np.where(groups < self.num_classes, groups, drawn)

    @property
    def settings(self) -> dict[str, Any]:
        """All that decides the stored graph, in plain types."""
        plain = asdict(self) | {"metric": self.metric.name, "model": GENERATOR_VERSION}
        for name in ("basis", "symmetrised", "data"):
            del plain[name]
        return plain

    @property
    def digest(self) -> str:
        """Eight letters that stand for the settings."""
        told = json.dumps(self.settings, sort_keys=True)
        return sha256(told.encode()).hexdigest()[:8]

    def _about(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "num_nodes": self.num_nodes,
            "num_edges": self.num_edges,
            "num_loops": 0,
            "num_features": self.features.width,
            "num_classes": self.num_classes,
            "directed": self.directed,
            "metric": self.metric.name,
            "provenance": {"basis": self.basis, "generated": self.settings},
        }
