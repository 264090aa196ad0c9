"""`unalike fetch`: download the raw files of datasets and convert them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import tyro

from unalike.cli.console import OUT, print_json, print_notes, progress_bar
from unalike.data.store import StoredGraph
from unalike.datasets import find
from unalike.datasets.base import Dataset
from unalike.datasets.fetch import (
    Fetched,
    fetch_file,
    record_checksums,
    remove_archives,
)
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
    datasets, summaries = [], []
    for name in names:
        dataset = find(name, data)
        if not isinstance(dataset, Dataset):
            raise UserError(f"'{name}' is not made of files that could be fetched.")
        datasets.append(dataset)
    with progress_bar() as progress:
        for dataset in datasets:
            summaries.append(fetch(dataset, half or None, progress))
            if not json:
                print_summary(summaries[-1])
    if json:
        print_json(summaries)


def fetch(dataset: Dataset, half: bool | None, progress: Progress) -> dict[str, Any]:
    """Download and convert one dataset, and return a summary."""
    root = dataset.root
    files = [fetch_file(file, root, progress=progress) for file in dataset.files]
    remove_archives(dataset.files, root)
    stored = convert(dataset, files, half, progress)
    metadata = stored.metadata
    record_checksums(root, files)
    sizes = ("num_nodes", "num_edges", "num_features", "num_classes")
    return {
        "name": dataset.name,
        "files": [
            {
                "path": str(file.path),
                "bytes": file.checksum.size,
                "sha256": file.checksum.sha256,
                "downloaded": file.downloaded,
                "known": file.known,
            }
            for file in files
        ],
        "stored": str(stored.folder),
        **{name: metadata[name] for name in sizes},
        "splits": metadata["provenance"]["splits"],
        "remarks": metadata["provenance"]["remarks"],
    }


def convert(
    dataset: Dataset, files: list[Fetched], half: bool | None, progress: Progress
) -> StoredGraph:
    """Convert the fetched files, and return the stored graph.

    An error names the files whose checksum was not known, because one may be wrong.
    """
    try:
        stored = dataset.open_stored(half=half, progress=progress)
        if differences := dataset.count_mismatches(stored.metadata):
            raise UserError(
                f"{dataset.name} was fetched, but it is not the known graph: "
                f"{', '.join(differences)}."
            )
    except UserError as error:
        new = ", ".join(str(file.path) for file in files if not file.known)
        hint = f" If a download was wrong, remove {new} and fetch again." if new else ""
        raise UserError(f"{error}{hint}") from None
    return stored


def print_summary(summary: dict[str, Any]) -> None:
    """Print a line about a dataset, and its notes."""
    files = summary["files"]
    downloaded = sum(file["downloaded"] for file in files)
    OUT.print(
        f"{summary['name']}: {downloaded} of {len(files)} files downloaded, "
        f"{summary['num_nodes']:,} nodes, {summary['num_edges']:,} edges, "
        f"{summary['num_features']:,} features, {summary['num_classes']} classes; "
        f"stored in {summary['stored']}",
        soft_wrap=True,
    )
    new = [file["path"] for file in files if not file["known"]]
    if new:
        print_notes(
            f"no checksum of {', '.join(new)} was known; it is stored in hashes.json."
        )
    print_notes(*summary["remarks"])
