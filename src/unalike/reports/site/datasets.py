"""Homophily and degrees of datasets for the page, cached."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unalike.data.graph import Graph
from unalike.data.split import Split
from unalike.data.store import StoredGraph, open_graph
from unalike.datasets.base import Dataset, Published
from unalike.datasets.registry import list_datasets, raw_files_status
from unalike.errors import UserError
from unalike.experiments.config import dataset_hash
from unalike.files import json_hash, read_json_object, write_cache
from unalike.measures import CONVENTIONS, measure
from unalike.measures.edge_statistics import UNDIRECTED, GraphView, degree_histogram
from unalike.measures.interpretation import headline, interpret, scalar_names
from unalike.progress import NO_PROGRESS, Progress
from unalike.reports.dataset_tables import published_value
from unalike.reports.paper_figures import log_binned
from unalike.reports.site.documents import Document, GraphKey, graph_labels
from unalike.reports.site.leaderboard import NO_PATHS, round_floats
from unalike.system import cache_dir
from unalike.version import __version__


def degree_document(graph: Graph) -> Document:
    """The number of nodes of every degree, and its mean over ranges of degrees."""
    degrees, counts = degree_histogram(GraphView.of(graph, UNDIRECTED))
    linked = degrees > 0
    means = (np.empty(0), np.empty(0))
    if linked.any():
        means = log_binned(degrees[linked], counts[linked])
    mean_degree, mean_nodes = (np.round(values, 4).tolist() for values in means)
    return {
        "rows": {"degree": degrees[linked].tolist(), "nodes": counts[linked].tolist()},
        "means": {"degree": mean_degree, "nodes": mean_nodes},
        "mean": float((degrees * counts).sum() / counts.sum()),
        "num_isolated": int(counts[~linked].sum()),
    }


# Homophily and degrees of the available datasets; each is measured once.


MAX_EDGES = 5_000_000
"""Larger datasets are skipped: measuring them takes minutes."""
DOCUMENT_FORMAT = 2
"""Increased when the keys of a document change, so that cached ones are made again."""


def dataset_documents(
    data: Path | None = None,
    paths: Mapping[GraphKey, str] = NO_PATHS,
    progress: Progress = NO_PROGRESS,
) -> Document:
    """Measures of datasets and stored graphs with runs, and why others are skipped."""
    available: dict[str, Dataset | StoredGraph] = {
        dataset.name: dataset
        for dataset in list_datasets(data)
        if raw_files_status(dataset) == "all" or dataset.cached()
    }
    own, skipped = own_graphs(paths, taken=available)
    available |= own
    small = {
        label: one for label, one in available.items() if num_edges(one) <= MAX_EDGES
    }
    progress.stage("measuring", len(small), "datasets")
    documents = []
    skipped |= {label: "too large" for label in available if label not in small}
    for label, dataset in small.items():
        try:
            documents.append(cached_document(label, dataset))
        except UserError as error:
            skipped[label] = str(error)
        progress.advance(1, label)
    return {"datasets": documents, "skipped": skipped}


def own_graphs(
    paths: Mapping[GraphKey, str], taken: Collection[str]
) -> tuple[dict[str, StoredGraph], dict[str, str]]:
    """Stored graphs in their folders by label, and why others cannot be measured."""
    names = [(name, "") for name in taken]
    labels = graph_labels([*names, *paths], paths)
    found, skipped = {}, {}
    for key, path in paths.items():
        try:
            stored = open_graph(Path(path))
        except UserError as error:
            skipped[labels[key]] = str(error)
            continue
        if dataset_hash(stored) == key[1]:
            found[labels[key]] = stored
        else:
            skipped[labels[key]] = "its folder has other data now"
    return found, skipped


def num_edges(dataset: Dataset | StoredGraph) -> int:
    """The number of edges of a dataset, as far as it is known without reading files."""
    stored = dataset if isinstance(dataset, StoredGraph) else dataset.cached()
    if stored:
        return int(stored.metadata["num_edges"])
    assert isinstance(dataset, Dataset)
    counts = dataset.counts or dataset.published
    return counts.num_edges or 0


def cached_document(label: str, dataset: Dataset | StoredGraph) -> Document:
    """The document of a dataset, from the cache folder where it is there."""
    key = {
        "data": dataset_hash(dataset),
        "name": label,
        "version": __version__,
        "format": DOCUMENT_FORMAT,
    }
    path = cache_dir() / "report" / f"{json_hash(key)}.json"
    if cached := read_json_object(path):
        return cached
    options: dict[str, Any] = (
        {"words": str(dataset.folder)}
        if isinstance(dataset, StoredGraph)
        else {"published": dataset.published, "convention": "paper"}
    )
    document = measure_document(
        label, dataset.load(), splits=dataset.splits(), **options
    )
    write_cache(path, json.dumps(document))
    return document


def measure_document(
    name: str,
    graph: Graph,
    published: Published | None = None,
    splits: Sequence[Split] = (),
    convention: str = "stored",
    words: str | None = None,
) -> Document:
    """The measures of a graph by a convention, and the command that prints them.

    `words` are what the command finds the graph by, if that is not its name.
    """
    values = measure(graph, conventions=CONVENTIONS[convention](name), splits=splits)
    names = scalar_names(values)
    matrix = values["compatibility"]
    return {
        "name": name,
        "summary": headline(name, values),
        "measures": {key: round_or_none(values[key]) for key in names},
        "descriptions": {key: interpret(key, values) for key in names},
        "published": {key: published_value(published, key) for key in names},
        "compatibility": [[round_or_none(value) for value in row] for row in matrix],
        "degrees": degree_document(graph),
        "convention": convention,
        "command": shlex.join(
            ["unalike", "measure", words or name, "--convention", convention]
        ),
    }


def round_or_none(value: Any) -> float | None:
    """A number with four digits after the point; None for NaN."""
    return None if value != value else float(round_floats(value))
