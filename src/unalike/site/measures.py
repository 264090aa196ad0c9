"""Measures: how homophilous the datasets at hand are; each is measured once."""

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
from unalike.site.cell import Document, rounded
from unalike.site.degrees import degrees
from unalike.version import __version__

LARGE = 5_000_000
"""Datasets of more edges are left out: they would keep somebody waiting."""


def measures(data: Path | None = None, progress: Progress = SILENT) -> Document:
    """The measures of every dataset at hand, and which were left out."""
    here = list(present(data))
    small = [one for one in here if num_edges(one) <= LARGE]
    progress.stage("measuring", len(small), "datasets")
    documents = []
    left_out = {one.name: "too large" for one in here if one not in small}
    for dataset in small:
        try:
            documents.append(measured(dataset))
        except UserError as error:
            left_out[dataset.name] = str(error)
        progress.advance(1, dataset.name)
    return {"datasets": documents, "left_out": left_out}


def present(data: Path | None) -> Iterator[Dataset]:
    """The datasets whose files, or whose stored forms, are there."""
    for dataset in catalogue(data):
        if at_hand(dataset) == "all" or dataset.ready():
            yield dataset


def num_edges(dataset: Dataset) -> int:
    """The edges of a dataset, as far as is known without reading its files."""
    if stored := dataset.ready():
        return int(stored.about["num_edges"])
    told = dataset.counts or dataset.published
    return told.num_edges or 0


def measured(dataset: Dataset) -> Document:
    """What the page tells of a dataset, from the cache where it is there."""
    told = {"data": fingerprint(dataset), "name": dataset.name, "version": __version__}
    place = cache_folder() / "measures" / f"{digest(told)}.json"
    if place.is_file():
        return dict(json.loads(place.read_text("utf-8")))
    document = taken(dataset)
    if is_writable(place.parent):
        place.parent.mkdir(parents=True, exist_ok=True)
        partial = place.with_suffix(".partial")
        partial.write_text(json.dumps(document), "utf-8")
        partial.replace(place)
    return document


def taken(dataset: Dataset) -> Document:
    """Measure a dataset."""
    return described(dataset.name, dataset.load(), dataset.published)


def described(name: str, graph: Graph, published: Published) -> Document:
    """The measures of a graph by the conventions behind the printed numbers."""
    found = measure(graph, conventions=paper_conventions(name))
    matrix = found["compatibility"]
    return {
        "name": name,
        "headline": headline(name, found),
        "measures": {key: number(found[key]) for key in scalars(found)},
        "words": {key: in_words(key, found) for key in scalars(found)},
        "printed": {key: printed(published, key) for key in scalars(found)},
        "compatibility": [[number(share) for share in row] for row in matrix],
        "degrees": degrees(graph),
        "command": f"unalike measure {shlex.quote(name)} --convention paper",
    }


def number(value: Any) -> float | None:
    """A number with few digits; none where a measure has no meaning."""
    return None if value != value else float(rounded(value))
