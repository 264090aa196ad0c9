"""Configuration of a synthetic graph (degree-corrected block model) and its storage."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Graph
from unalike.data.split import random_splits, stack_codes
from unalike.data.store import (
    GraphWriter,
    StoredGraph,
    add_csr,
    atomic_graph_writer,
    open_graph,
)
from unalike.datasets.splits import NUM_SPLITS
from unalike.datasets.stored import StoredSource, store_once
from unalike.datasets.twins.features import Gaussian, OneHot
from unalike.datasets.twins.generator import (
    DegreeDistribution,
    apportion,
    sample_edges,
    sample_nodes,
    sample_target_classes,
)
from unalike.datasets.undirected import undirected_graph
from unalike.errors import UserError
from unalike.files import json_hash
from unalike.progress import NO_PROGRESS, Progress
from unalike.system import data_root, stored_folders

GENERATOR_VERSION = 1
"""Increased when the same configuration gives another graph."""

Numbers: TypeAlias = tuple[int | float, ...]


@dataclass(frozen=True, kw_only=True)
class Twin(StoredSource):
    """Configuration of a synthetic graph; the same one gives the same graph.

    An edge from u of class k to v of class l has a rate proportional to
    out_degree(u) in_degree(v) edges[k][l] preference(u, l) preference(v, k): a
    degree-corrected block model (Karrer and Newman 2011) in which each node has class
    preferences of its own. Field names are part of the folder names of stored graphs.
    """

    num_nodes: int
    num_edges: int
    sizes: Numbers
    """Nodes of each class, up to a factor."""
    edges: tuple[Numbers, ...]
    """Edges from class to class, up to a factor; symmetric for an undirected graph."""
    features: Gaussian | OneHot
    leaving: DegreeDistribution
    """The distribution of degrees; in a directed graph, of out-degrees."""
    arriving: DegreeDistribution | None = None
    """The distribution of in-degrees; None makes the graph undirected."""
    monophily: float = 0.2
    """The correlation between the classes of two neighbours of a node."""
    unlabelled: bool = False
    """Nodes of the last class are unlabelled."""
    seed: int = 0
    basis: str = ""
    """The origin of the numbers."""
    symmetrised: bool = True
    """Methods get the undirected graph."""

    def __post_init__(self) -> None:
        table, sizes = np.array(self.edges, float), np.array(self.sizes)
        problem = ""
        if table.shape != 2 * sizes.shape:
            problem = f"its {len(sizes)} classes need a square table of edges"
        elif not self.directed and not np.array_equal(table, table.T):
            problem = "an undirected twin needs a symmetric table of edges"
        elif not 0 <= self.monophily < 1:
            problem = f"its monophily {self.monophily} is not from 0 up to 1"
        elif not 0 <= self.features.informativeness <= 1:
            given = self.features.informativeness
            problem = f"its informativeness {given} is not in 0 to 1"
        elif self.seed < 0:
            problem = f"its seed {self.seed} is negative"
        elif apportion(sizes, self.num_nodes).min(initial=1) < 1:
            problem = f"{self.num_nodes} nodes are too few for a node of each class"
        if problem:
            raise UserError(f"The twin '{self.name}' is not possible: {problem}.")

    @property
    def directed(self) -> bool:
        return self.arriving is not None

    @property
    def num_classes(self) -> int:
        return len(self.sizes) - self.unlabelled

    @property
    def edge_homophily(self) -> float:
        """The fraction of edges within a class, of those between labelled nodes."""
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

    def prepare(
        self, stored: StoredGraph, *, progress: Progress = NO_PROGRESS
    ) -> Graph:
        if not self.symmetrised:
            return stored.graph
        return undirected_graph(stored, self._folder_name, self.data, progress=progress)

    @property
    def _folder_name(self) -> str:
        return f"{self.name}-{self.digest}"

    def cached(self) -> StoredGraph | None:
        folders = stored_folders(data_root(self.data), self._folder_name)
        return next((open_graph(path) for path in folders if path.exists()), None)

    def open_stored(self, *, progress: Progress = NO_PROGRESS) -> StoredGraph:
        save = partial(self.save, progress=progress)
        return store_once(self._folder_name, self.data, self.cached, save)

    def save(self, folder: Path, *, progress: Progress = NO_PROGRESS) -> StoredGraph:
        """Generate the graph into a new folder."""
        with atomic_graph_writer(folder) as writer:
            classes = self._write_edges(writer, progress)
            labels = np.where(classes < self.num_classes, classes, -1)
            writer.add("labels", labels)
            splits = random_splits(torch.from_numpy(labels), count=NUM_SPLITS, seed=0)
            writer.add("splits", stack_codes(splits, self.num_nodes))
            feature_classes = self._feature_classes(classes)
            self.features.write(writer, feature_classes, self.seed, progress)
            writer.commit(
                {
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
            )
        return open_graph(folder)

    def _write_edges(self, writer: GraphWriter, progress: Progress) -> np.ndarray:
        """Sample and write the edges; returns the class of each node."""
        class_edges = apportion(np.ravel(self.edges), self.num_edges)
        class_edges = class_edges.reshape(len(self.sizes), len(self.sizes))
        nodes = sample_nodes(
            apportion(np.array(self.sizes), self.num_nodes),
            class_edges,
            out_degrees=self.leaving,
            in_degrees=self.arriving,
            monophily=self.monophily,
            rng=np.random.default_rng([self.seed, 0]),
        )
        counts = sample_target_classes(nodes, class_edges, seed=2 * self.seed)
        shape = (self.num_edges,)
        indices = (
            np.asarray(writer.create_memmap("columns", np.int32, shape))
            if self.directed
            else np.empty(shape, np.int32)
        )
        indptr = sample_edges(
            nodes,
            counts,
            indices,
            undirected=not self.directed,
            seed=2 * self.seed + 1,
            progress=progress,
        )
        if self.directed:
            writer.add("starts", indptr)
        else:
            csr = (torch.from_numpy(indptr), torch.from_numpy(indices), self.num_nodes)
            add_csr(writer, "", Adjacency(*csr).to_undirected())
        return nodes.classes

    def _feature_classes(self, classes: np.ndarray) -> np.ndarray:
        """The class of each node, sampled by class size for unlabelled nodes."""
        sizes = np.cumsum(self.sizes[: self.num_classes])
        rng = np.random.default_rng([self.seed, 1])
        sampled = np.searchsorted(sizes, rng.random(len(classes)) * sizes[-1])
        return np.where(classes < self.num_classes, classes, sampled)

    @property
    def settings(self) -> dict[str, Any]:
        """The fields that determine the stored graph, as JSON types."""
        fields = asdict(self) | {"metric": self.metric.name, "model": GENERATOR_VERSION}
        for name in ("basis", "symmetrised", "data"):
            del fields[name]
        return fields

    @property
    def digest(self) -> str:
        return json_hash(self.settings, 8)
