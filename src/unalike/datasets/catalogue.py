"""The catalogue: what there is, and how much of it is at hand."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from unalike.datasets import DATASETS, discover
from unalike.datasets.dataset import Dataset
from unalike.datasets.root import data_root

COUNTED = ("num_nodes", "num_edges", "num_features", "num_classes")


def catalogue(data: Path | None = None) -> Iterator[Dataset]:
    """Every dataset that has a name, and those that only lie in the data root."""
    for dataset in (*DATASETS.values(), *dict(discover(data_root(data))).values()):
        yield dataset.at(data)


def is_worth_listing(dataset: Dataset) -> bool:
    """Does a short list name it: has it more than a name, or is it at hand?"""
    return not dataset.minor or bool(dataset.found()) or dataset.ready() is not None


def entry(dataset: Dataset) -> dict[str, Any]:
    """What is known of a dataset; counts are of its files rather than as printed."""
    stored = dataset.ready()
    published = asdict(dataset.published)
    exact = asdict(dataset.counts) if dataset.counts else {}
    measured = {key: stored.about[key] for key in COUNTED} if stored else {}
    counts = {key: measured.get(key, exact.get(key, published[key])) for key in COUNTED}
    return {
        "name": dataset.name,
        **counts,
        "edge_homophily": published["edge_homophily"],
        "class_homophily": published["class_homophily"],
        "metric": dataset.metric.name,
        "directed": dataset.directed,
        "label_meaning": dataset.label_meaning,
        "licence": dataset.licence,
        "raw": at_hand(dataset),
        "stored": stored is not None,
        "folder": str(stored.folder) if stored else None,
        "about": dataset.about,
        "citation": dataset.citation,
        "published": published,
    }


def at_hand(dataset: Dataset) -> str:
    """How many of the raw files are there: all, some or none."""
    wanted = {file.path for file in dataset.files}
    found = set(dataset.found())
    if wanted and wanted <= found:
        return "all"
    return "some" if found else "none"
