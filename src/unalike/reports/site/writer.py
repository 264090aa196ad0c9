"""Write the static site into a folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from unalike.errors import UserError
from unalike.progress import NO_PROGRESS, Progress
from unalike.reports.site.documents import Document, as_script
from unalike.reports.site.site_data import SiteData

REPORT_MARKER = "data/site.js"
"""The file by which a report is known."""


def write_site(
    folder: Path,
    survey: SiteData,
    measures: Document | None,
    progress: Progress = NO_PROGRESS,
) -> Document:
    """Write the site in place of an older one; what it holds, as counts."""
    check_output_dir(folder)
    site = {**survey.look(progress), "measured": measures is not None}
    place = folder.resolve()
    partial = place.with_name(f".{place.name}.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        write_assets(partial, {"site": site, "measures": measures})
        write_method_runs(partial, survey, progress)
        shutil.rmtree(place, ignore_errors=True)
        partial.replace(place)
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror}.") from None
    return counts(site, measures)


def write_assets(folder: Path, documents: Mapping[str, Document | None]) -> None:
    """Write the assets, and the documents that there are."""
    for path, asset in assets():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(asset.read_bytes())
    (folder / "data").mkdir()
    for name, document in documents.items():
        if document is not None:
            write_document(folder, name, document)


def write_method_runs(folder: Path, survey: SiteData, progress: Progress) -> None:
    """Write the runs, a file for each method on each dataset."""
    shelves = survey.shelves()
    progress.stage("writing runs", len(shelves), "shelves")
    for mark, pair in shelves.items():
        write_document(folder, mark, survey.shelf(pair))
        progress.advance(1)


def check_output_dir(folder: Path) -> None:
    """Refuse to write over something that is no report."""
    if folder.is_file():
        raise UserError(f"{folder} is a file; name a folder with --out.")
    if (
        folder.is_dir()
        and any(folder.iterdir())
        and not (folder / REPORT_MARKER).is_file()
    ):
        raise UserError(
            f"{folder} is not empty and holds no report; name another with --out."
        )


def write_document(folder: Path, name: str, document: Document) -> None:
    """Write one document."""
    place = folder / "data" / f"{name}.js"
    place.write_text(as_script(name, document), "utf-8")


def assets() -> Iterator[tuple[str, Traversable]]:
    """The files that are the same for every report, by their place in the site."""
    home = files("unalike.reports.site") / "assets"
    for path, asset in _within(home, ""):
        yield ("" if path == "index.html" else "assets/") + path, asset


def _within(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        path = f"{prefix}{entry.name}"
        if entry.is_dir():
            yield from _within(entry, f"{path}/")
        else:
            yield path, entry


def counts(site: Document, measures: Document | None) -> Document:
    """How much a site shows."""
    return {
        "runs": site["runs"],
        "tables": len(site["tables"]),
        "cells": sum(
            bool(cell and "mean" in cell)
            for table in site["tables"]
            for row in table["cells"]
            for cell in row
        ),
        "missing": sum(len(one["cells"]) for one in site["missing"]),
        "failures": sum(one["runs"] for one in site["failures"]),
        "datasets": len(measures["datasets"]) if measures else 0,
    }
