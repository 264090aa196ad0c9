"""Homophily and degrees of the available datasets; each is measured once."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unalike.cache import cache_folder
from unalike.datasets.catalogue import at_hand, catalogue
from unalike.datasets.dataset import Dataset, Published
from unalike.datasets.root import is_writable
from unalike.errors import UserError
from unalike.experiments.fingerprint import digest, fingerprint
from unalike.graph import Graph
from unalike.measures import measure, paper_conventions
from unalike.measures.found import headline, scalars
from unalike.measures.words import in_words
from unalike.progress import SILENT, Progress
from unalike.reports.findings import printed
from unalike.site.cell import Document, round_floats
from unalike.site.degrees import degree_document
from unalike.version import __version__

MAX_EDGES = 5_000_000
"""Larger datasets are skipped: measuring them takes minutes."""


def dataset_documents(
    data: Path | None = None, progress: Progress = SILENT
) -> Document:
    """The measures of every available dataset, and the datasets that were skipped."""
    available = list(available_datasets(data))
    small = [one for one in available if num_edges(one) <= MAX_EDGES]
    progress.stage("measuring", len(small), "datasets")
    documents = []
    skipped = {one.name: "too large" for one in available if one not in small}
    for dataset in small:
        try:
            documents.append(cached_document(dataset))
        except UserError as error:
            skipped[dataset.name] = str(error)
        progress.advance(1, dataset.name)
    return {"datasets": documents, "skipped": skipped}


def available_datasets(data: Path | None) -> Iterator[Dataset]:
    """The datasets whose raw or converted files are on this machine."""
    for dataset in catalogue(data):
        if at_hand(dataset) == "all" or dataset.ready():
            yield dataset


def num_edges(dataset: Dataset) -> int:
    """The number of edges of a dataset, as far as it is known without reading files."""
    if stored := dataset.ready():
        return int(stored.about["num_edges"])
    counts = dataset.counts or dataset.published
    return counts.num_edges or 0


def cached_document(dataset: Dataset) -> Document:
    """The document of a dataset, from the cache folder where it is there."""
    key = {"data": fingerprint(dataset), "name": dataset.name, "version": __version__}
    path = cache_folder() / "report" / f"{digest(key)}.json"
    if path.is_file():
        return dict(json.loads(path.read_text("utf-8")))
    document = compute_document(dataset)
    if is_writable(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(document), "utf-8")
        partial.replace(path)
    return document


def compute_document(dataset: Dataset) -> Document:
    """Measure a dataset."""
    return measure_document(dataset.name, dataset.load(), dataset.published)


def measure_document(name: str, graph: Graph, published: Published) -> Document:
    """The measures of a graph by the conventions behind the published numbers."""
    values = measure(graph, conventions=paper_conventions(name))
    names = scalars(values)
    matrix = values["compatibility"]
    return {
        "name": name,
        "summary": headline(name, values),
        "measures": {key: round_or_none(values[key]) for key in names},
        "descriptions": {key: in_words(key, values) for key in names},
        "published": {key: printed(published, key) for key in names},
        "compatibility": [[round_or_none(value) for value in row] for row in matrix],
        "degrees": degree_document(graph),
        "command": f"unalike measure {shlex.quote(name)} --convention paper",
    }


def round_or_none(value: Any) -> float | None:
    """A number with four digits after the point; None for NaN."""
    return None if value != value else float(round_floats(value))
