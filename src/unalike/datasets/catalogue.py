"""The catalogue: what there is, and how much of it is at hand."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from unalike.datasets import DATASETS, discover
from unalike.datasets.dataset import Dataset
from unalike.datasets.root import data_root
from unalike.datasets.twins.model import Twin
from unalike.store import Stored

COUNTED = ("num_nodes", "num_edges", "num_features", "num_classes")


def catalogue(data: Path | None = None) -> Iterator[Dataset]:
    """Every dataset that has a name, and those that only lie in the data root."""
    for dataset in (*DATASETS.values(), *dict(discover(data_root(data))).values()):
        yield dataset.at(data)


def entry(dataset: Dataset) -> dict[str, Any]:
    """What is known of a dataset; counts are of its files rather than as printed."""
    stored = dataset.ready()
    published = asdict(dataset.published)
    exact = asdict(dataset.counts) if dataset.counts else {}
    measured = {key: stored.about[key] for key in COUNTED} if stored else {}
    counts = {key: measured.get(key, exact.get(key, published[key])) for key in COUNTED}
    raw = at_hand(dataset)
    return {
        "name": dataset.name,
        **counts,
        "edge_homophily": published["edge_homophily"],
        "class_homophily": published["class_homophily"],
        "metric": dataset.metric.name,
        "directed": dataset.directed,
        "label_meaning": dataset.label_meaning,
        "licence": dataset.licence,
        "raw": raw,
        **presence(stored),
        "minor": dataset.minor and raw == "none" and stored is None,
        "about": dataset.about,
        "citation": dataset.citation,
        "published": published,
    }


def twin_entry(twin: Twin) -> dict[str, Any]:
    """What is known of a twin before it is generated."""
    return {
        "name": twin.name,
        "num_nodes": twin.num_nodes,
        "num_edges": twin.num_edges,
        "num_features": twin.features.width,
        "num_classes": twin.num_classes,
        "edge_homophily": twin.edge_homophily,
        "monophily": twin.monophily,
        "metric": twin.metric.name,
        "directed": twin.directed,
        **presence(twin.ready()),
        "basis": twin.basis,
    }


def presence(stored: Stored | None) -> dict[str, Any]:
    """Is a stored form there, and where?"""
    return {
        "stored": stored is not None,
        "folder": str(stored.folder) if stored else None,
    }


def at_hand(dataset: Dataset) -> str:
    """How many of the raw files are there: all, some or none."""
    wanted = {file.path for file in dataset.files}
    found = set(dataset.found())
    if wanted and wanted <= found:
        return "all"
    return "some" if found else "none"
