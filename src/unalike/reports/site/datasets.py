"""Homophily and degrees of datasets for the page, cached."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from unalike.data.graph import Graph
from unalike.datasets.base import Dataset, Published
from unalike.datasets.paths import is_writable
from unalike.datasets.registry import list_datasets, raw_files_status
from unalike.errors import UserError
from unalike.experiments.config import dataset_hash, json_hash
from unalike.measures import measure, paper_conventions
from unalike.measures.conventions import UNDIRECTED
from unalike.measures.edge_statistics import GraphView, degree_histogram
from unalike.measures.interpretation import headline, interpret, scalar_names
from unalike.progress import NO_PROGRESS, Progress
from unalike.reports.dataset_tables import published_value
from unalike.reports.paper_figures import log_binned
from unalike.reports.site.documents import Document, round_floats
from unalike.system import cache_dir
from unalike.version import __version__

# Degrees: how many nodes of a graph have how many neighbours.


def degree_document(graph: Graph) -> Document:
    """Every degree with its nodes, and the mean of stretches of degrees.

    Edges are read both ways; nodes without any are counted apart.
    """
    found, counts = degree_histogram(GraphView.of(graph, UNDIRECTED))
    some = found > 0
    line: list[np.ndarray] = [np.empty(0), np.empty(0)]
    if some.any():
        line = list(log_binned(found[some], counts[some]))
    return {
        "degrees": found[some].tolist(),
        "counts": counts[some].tolist(),
        "line": [np.round(values, 4).tolist() for values in line],
        "mean": float((found * counts).sum() / counts.sum()),
        "alone": int(counts[~some].sum()),
    }


# Measures: how homophilous the datasets at hand are; each is measured once.


MAX_EDGES = 5_000_000
"""Datasets of more edges are left out: they would keep somebody waiting."""


def dataset_documents(
    data: Path | None = None, progress: Progress = NO_PROGRESS
) -> Document:
    """The measures of every dataset at hand, and which were left out."""
    here = list(available_datasets(data))
    small = [one for one in here if num_edges(one) <= MAX_EDGES]
    progress.stage("measuring", len(small), "datasets")
    documents = []
    left_out = {one.name: "too large" for one in here if one not in small}
    for dataset in small:
        try:
            documents.append(cached_document(dataset))
        except UserError as error:
            left_out[dataset.name] = str(error)
        progress.advance(1, dataset.name)
    return {"datasets": documents, "left_out": left_out}


def available_datasets(data: Path | None) -> Iterator[Dataset]:
    """The datasets whose files, or whose stored forms, are there."""
    for dataset in list_datasets(data):
        if raw_files_status(dataset) == "all" or dataset.cached():
            yield dataset


def num_edges(dataset: Dataset) -> int:
    """The edges of a dataset, as far as is known without reading its files."""
    if stored := dataset.cached():
        return int(stored.metadata["num_edges"])
    told = dataset.counts or dataset.published
    return told.num_edges or 0


def cached_document(dataset: Dataset) -> Document:
    """What the page tells of a dataset, from the cache where it is there."""
    told = {"data": dataset_hash(dataset), "name": dataset.name, "version": __version__}
    place = cache_dir() / "measures" / f"{json_hash(told)}.json"
    if place.is_file():
        return dict(json.loads(place.read_text("utf-8")))
    document = compute_document(dataset)
    if is_writable(place.parent):
        place.parent.mkdir(parents=True, exist_ok=True)
        partial = place.with_suffix(".partial")
        partial.write_text(json.dumps(document), "utf-8")
        partial.replace(place)
    return document


def compute_document(dataset: Dataset) -> Document:
    """Measure a dataset."""
    return measure_document(dataset.name, dataset.load(), dataset.published)


def measure_document(name: str, graph: Graph, published: Published) -> Document:
    """The measures of a graph by the conventions behind the printed numbers."""
    found = measure(graph, conventions=paper_conventions(name))
    matrix = found["compatibility"]
    return {
        "name": name,
        "headline": headline(name, found),
        "measures": {key: round_or_none(found[key]) for key in scalar_names(found)},
        "words": {key: interpret(key, found) for key in scalar_names(found)},
        "printed": {
            key: published_value(published, key) for key in scalar_names(found)
        },
        "compatibility": [[round_or_none(share) for share in row] for row in matrix],
        "degrees": degree_document(graph),
        "command": f"unalike measure {shlex.quote(name)} --convention paper",
    }


def round_or_none(value: Any) -> float | None:
    """A number with few digits; none where a measure has no meaning."""
    return None if value != value else float(round_floats(value))
