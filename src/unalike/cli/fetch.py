"""`unalike fetch`: bring the raw files of datasets here and convert them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import tyro

from unalike.cli.console import OUT, print_json, print_notes, progress_bar
from unalike.data.store import StoredGraph
from unalike.datasets import find
from unalike.datasets.base import Dataset
from unalike.datasets.fetch import Fetched, fetch_file, remove_archives
from unalike.errors import UserError
from unalike.progress import Progress


def command(
    names: Annotated[tuple[str, ...], tyro.conf.Positional],
    /,
    *,
    data: Path | None = None,
    half: bool = False,
    json: bool = False,
) -> None:
    """Download the raw files of datasets, check them and convert them.

    Example: unalike fetch cornell5 tolokers --data graphs

    Args:
        names: Names of datasets; `unalike list datasets` shows them.
        data: The data root; by default $UNALIKE_DATA, else the user's cache folder.
        half: Store dense features with 16 bits, half the size on disk.
        json: Print one JSON document instead of lines.
    """
    if not names:
        raise UserError("Name a dataset; `unalike list datasets` shows them all.")
    datasets = [fetchable(name, data) for name in names]
    told = []
    with progress_bar() as progress:
        for dataset in datasets:
            told.append(fetch(dataset, half or None, progress))
            if not json:
                print_summary(told[-1])
    if json:
        print_json(told)


def fetchable(name: str, data: Path | None) -> Dataset:
    """The dataset of a name, if it is one that has files."""
    dataset = find(name, data)
    if not isinstance(dataset, Dataset):
        raise UserError(f"'{name}' is not made of files that could be fetched.")
    return dataset


def fetch(dataset: Dataset, half: bool | None, progress: Progress) -> dict[str, Any]:
    """Fetch and convert one dataset; tell what came."""
    root = dataset.root
    files = [fetch_file(file, root, progress=progress) for file in dataset.files]
    remove_archives(dataset.files, root)
    stored = dataset.open_stored(half=half, progress=progress)
    check(dataset, stored)
    return {
        "name": dataset.name,
        "files": [describe(file) for file in files],
        "stored": str(stored.folder),
        "num_nodes": stored.metadata["num_nodes"],
        "num_edges": stored.metadata["num_edges"],
        "num_features": stored.metadata["num_features"],
        "num_classes": stored.metadata["num_classes"],
        "splits": stored.metadata["provenance"]["splits"],
        "remarks": stored.metadata["provenance"]["remarks"],
    }


def check(dataset: Dataset, stored: StoredGraph) -> None:
    """Compare a converted graph with what its files are known to hold."""
    if differences := dataset.count_mismatches(stored.metadata):
        raise UserError(
            f"{dataset.name} was fetched, but it is not the known graph: "
            f"{', '.join(differences)}."
        )


def describe(file: Fetched) -> dict[str, Any]:
    """A file as the JSON document tells it."""
    return {
        "path": str(file.path),
        "bytes": file.checksum.size,
        "sha256": file.checksum.sha256,
        "downloaded": file.downloaded,
        "known": file.known,
    }


def print_summary(told: dict[str, Any]) -> None:
    """One line about a dataset, and one for everything that is worth knowing."""
    files = told["files"]
    came = sum(file["downloaded"] for file in files)
    OUT.print(
        f"{told['name']}: {came} of {len(files)} files downloaded, "
        f"{told['num_nodes']:,} nodes, {told['num_edges']:,} edges, "
        f"{told['num_features']:,} features, {told['num_classes']} classes; "
        f"stored in {told['stored']}",
        soft_wrap=True,
        markup=False,
    )
    new = [file["path"] for file in files if not file["known"]]
    if new:
        print_notes(
            [f"no checksum of {', '.join(new)} was known; hashes.json keeps it now."]
        )
    print_notes(told["remarks"])
