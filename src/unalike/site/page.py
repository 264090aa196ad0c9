"""Page: the folder that holds the site."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
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
    site = {**survey.look(), "measured": measures is not None}
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    for path, asset in assets():
        (partial / path).parent.mkdir(parents=True, exist_ok=True)
        (partial / path).write_bytes(asset.read_bytes())
    keep(partial, "site", site)
    if measures is not None:
        keep(partial, "measures", measures)
    shelves = survey.shelves()
    progress.stage("writing runs", len(shelves), "shelves")
    for mark, pair in shelves.items():
        keep(partial, mark, survey.shelf(pair))
        progress.advance(1)
    shutil.rmtree(folder, ignore_errors=True)
    partial.replace(folder)
    return counts(site, measures)


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
    place.parent.mkdir(parents=True, exist_ok=True)
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
