"""Build: from a folder of dump files to a collection, in one call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from unalike.datasets.lock import alone
from unalike.errors import UserError
from unalike.progress import SILENT, Progress
from unalike.wiki.collection import Collection, collecting
from unalike.wiki.dumps.files import DumpFiles
from unalike.wiki.dumps.links import open_links, place_links, read_links
from unalike.wiki.dumps.pages import Pages, read_pages
from unalike.wiki.dumps.redirects import read_redirects
from unalike.wiki.dumps.tables import Found
from unalike.wiki.dumps.targets import read_targets
from unalike.wiki.dumps.titles import count_titles, load_titles
from unalike.wiki.dumps.views import NONE, read_views
from unalike.wiki.dumps.work import Stage, Work


def collect(
    folder: str | Path,
    out: str | Path,
    *,
    start: str | None = None,
    pages: int | None = None,
    progress: Progress = SILENT,
) -> Collection:
    """Read the dump files in a folder into a collection, or go on with that.

    With a start, only the articles that links lead to from there; of those the first
    `pages`, in the order of a crawl. Finished stages are kept beside the collection
    until it is whole, and are not repeated by a second try.
    """
    if pages is not None and (start is None or pages < 1):
        raise UserError(
            f"A title to start from and 1 or more pages belong together, not "
            f"{start} and {pages}."
        )
    files = DumpFiles.find(Path(folder))
    about = {"wiki": files.wiki, "start": start, "pages": pages, "files": files.sizes()}
    out = Path(out).absolute()
    with alone(out):
        if out.exists():
            return _finished(out, about)
        work = Work.open(out, files)
        found = _read(files, work, progress)
        if start is not None:
            found.keep(start, pages)
        with collecting(out) as writer:
            found.write(writer, progress)
            told = {"dates": files.dates(), "remarks": found.remarks}
            collection = writer.commit(about | told)
        work.discard()
    return collection


def _finished(out: Path, about: dict[str, Any]) -> Collection:
    collection = Collection.open(out)
    if not about.items() <= collection.about.items():
        raise UserError(
            f"{out} is a collection of other dumps or pages; name another folder."
        )
    return collection


def _read(files: DumpFiles, work: Work, progress: Progress) -> Found:
    """Run the stages that are not finished, and gather what all of them found."""
    table, by_id = open_links(files)
    known = work.stage("pages", lambda stage: read_pages(files, stage, progress))
    leads = work.stage(
        "redirects", lambda stage: read_redirects(files, known, stage, progress)
    )
    targets: Stage | None = None
    if by_id:
        targets = work.stage(
            "targets", lambda stage: read_targets(files, known, stage, progress)
        )
    links = work.stage(
        "links", lambda stage: read_links(table, known, targets, stage, progress)
    )
    missing = targets or links
    num_titles = count_titles(known) + count_titles(missing)
    placed = work.stage(
        "placed", lambda stage: place_links(links, num_titles, stage, progress)
    )
    views = read_views(files, work, known, progress)
    return Found(
        Pages.load(known),
        pa.concat_arrays([load_titles(known), load_titles(missing)]),
        leads.load("leads"),
        placed.mapped("starts"),
        placed.mapped("columns"),
        views.load("views") if views else None,
        _remarks(views),
    )


def _remarks(views: Stage | None) -> list[str]:
    if views is None:
        return ["there was no file of page views, so that no article has any."]
    damaged = int(views.load("damaged"))
    told = [f"{damaged:,} lines of page views could not be read."] if damaged else []
    if not (views.load("views") != NONE).any():
        told.append("no line of the page views names an article of this wiki.")
    return told
