"""Write the static site into a folder."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from unalike.errors import UserError
from unalike.files import (
    check_writable,
    partial_folder,
    read_manifest,
    remove_folder,
    write_manifest,
)
from unalike.progress import NO_PROGRESS, Progress
from unalike.reports.site.charts import charts_document, library
from unalike.reports.site.documents import Document, as_script
from unalike.reports.site.site_data import SiteData

REPORT_MARKER = "data/site.js"
"""A folder with this file holds a report, also one without a manifest."""


def write_site(
    folder: Path,
    site_data: SiteData,
    datasets: Document | None,
    progress: Progress = NO_PROGRESS,
) -> Document:
    """Write the page in place of an older one; return the counts of what it shows."""
    check_output_dir(folder)
    assets = {**static_assets(), **chart_assets(progress)}
    site = {**site_data.site_document(progress), "has_datasets": datasets is not None}
    path = folder.resolve()
    with partial_folder(path) as partial:
        for name, content in assets.items():
            (partial / name).parent.mkdir(parents=True, exist_ok=True)
            (partial / name).write_bytes(content)
        for name, document in documents(site, datasets, site_data, progress):
            file = partial / "data" / f"{name}.js"
            file.write_text(as_script(name, document), "utf-8")
        write_manifest(partial, files_in(partial))
        check_output_dir(path)
        remove_folder(path)
        partial.rename(path)
    return counts(site, datasets)


def documents(
    site: Document, datasets: Document | None, site_data: SiteData, progress: Progress
) -> Iterator[tuple[str, Document]]:
    """The documents of the page, last the runs of each method on each dataset."""
    yield "site", site
    if datasets is not None:
        yield "datasets", datasets
    pairs = site_data.method_run_ids()
    progress.stage("writing runs", len(pairs), "methods on datasets")
    for document_id, pair in pairs.items():
        yield document_id, site_data.method_runs_document(pair)
        progress.advance(1)


def check_output_dir(folder: Path) -> None:
    """Raise an error where writing would replace something that is no report."""
    if folder.is_file():
        raise UserError(f"{folder} is a file; name a folder with --out.")
    check_writable(folder)
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    found = files_in(folder)
    written = read_manifest(folder)
    if not written and REPORT_MARKER in found:
        written = {name for name in found if is_of_older_report(name)}
    if not written:
        raise UserError(
            f"{folder} is not empty and holds no report; name another with --out."
        )
    others = sorted(found - written)
    if others:
        raise UserError(
            f"{folder} holds a report and files that are not part of it, as "
            f"{others[0]}; move them or name another folder with --out."
        )


def files_in(folder: Path) -> set[str]:
    """The paths of all files in a folder, relative to it."""
    paths = (
        path for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()
    )
    return {path.relative_to(folder).as_posix() for path in paths}


def is_of_older_report(name: str) -> bool:
    """Whether a file can be of a report that has no manifest."""
    first, _, rest = name.partition("/")
    if first == "data":
        return rest.endswith(".js") and "/" not in rest
    return name in {*static_assets(), "assets/vega.js"}


def static_assets() -> dict[str, bytes]:
    """The page, its style and its scripts, by their paths in the report."""
    home = files("unalike.reports.site") / "assets"
    return {
        name if name == "index.html" else f"assets/{name}": (home / name).read_bytes()
        for name in sorted(entry.name for entry in home.iterdir())
    }


def chart_assets(progress: Progress = NO_PROGRESS) -> dict[str, bytes]:
    """The chart library and the specifications, by their paths in the report."""
    progress.stage("loading the chart library", 1, "files")
    script, specifications = library(), as_script("charts", charts_document())
    progress.advance(1)
    return {
        "assets/vega.js": script.encode(),
        "data/charts.js": specifications.encode(),
    }


def counts(site: Document, datasets: Document | None) -> Document:
    """How much a report shows."""
    return {
        "runs": site["runs"],
        "tables": len(site["tables"]),
        "cells": sum(
            bool(cell and "mean" in cell)
            for table in site["tables"]
            for row in table["cells"]
            for cell in row
        ),
        "missing": sum(len(group["cells"]) for group in site["missing"]),
        "failures": sum(group["runs"] for group in site["failed_runs"]),
        "datasets": len(datasets["datasets"]) if datasets else 0,
    }
