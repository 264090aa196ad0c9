"""Page: the folder that holds the site."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from unalike.errors import UserError
from unalike.progress import SILENT, Progress
from unalike.site.cell import Document
from unalike.site.script import script
from unalike.site.survey import Survey

MARK = "data/site.js"
"""The file by which a report is known."""


def write(
    folder: Path,
    survey: Survey,
    measures: Document | None,
    progress: Progress = SILENT,
) -> Document:
    """Write the site in place of an older one; what it holds, as counts."""
    check(folder)
    site = {**survey.look(progress), "measured": measures is not None}
    place = folder.resolve()
    partial = place.with_name(f".{place.name}.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        fill(partial, {"site": site, "measures": measures})
        keep_shelves(partial, survey, progress)
        shutil.rmtree(place, ignore_errors=True)
        partial.replace(place)
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror}.") from None
    return counts(site, measures)


def fill(folder: Path, documents: Mapping[str, Document | None]) -> None:
    """Write the assets, and the documents that there are."""
    for path, asset in assets():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(asset.read_bytes())
    (folder / "data").mkdir()
    for name, document in documents.items():
        if document is not None:
            keep(folder, name, document)


def keep_shelves(folder: Path, survey: Survey, progress: Progress) -> None:
    """Write the runs, a file for each method on each dataset."""
    shelves = survey.shelves()
    progress.stage("writing runs", len(shelves), "shelves")
    for mark, pair in shelves.items():
        keep(folder, mark, survey.shelf(pair))
        progress.advance(1)


def check(folder: Path) -> None:
    """Refuse to write over something that is no report."""
    if folder.is_file():
        raise UserError(f"{folder} is a file; name a folder with --out.")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise UserError(
            f"{folder} is not empty and holds no report; name another with --out."
        )


def keep(folder: Path, name: str, document: Document) -> None:
    """Write one document."""
    place = folder / "data" / f"{name}.js"
    place.write_text(script(name, document), "utf-8")


def assets() -> Iterator[tuple[str, Traversable]]:
    """The files that are the same for every report, by their place in the site."""
    home = files("unalike.site") / "assets"
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
