"""`unalike crawl`: make a stored graph of a wiki."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import tyro

from unalike.cli.console import print_notes, print_output, progress_bar
from unalike.data.store import StoredGraph
from unalike.errors import UserError
from unalike.progress import Progress
from unalike.wiki.api_client import CrawlPolicy
from unalike.wiki.build import CLASSES, build_graph, check_build
from unalike.wiki.collection import Collection
from unalike.wiki.crawl import crawl
from unalike.wiki.dumps import collect

Folder = Annotated[Path | None, tyro.conf.arg(metavar="DIR")]
DEFAULT_POLICY = CrawlPolicy()


def command(
    *,
    api: Annotated[str | None, tyro.conf.arg(metavar="URL")] = None,
    start: Annotated[str | None, tyro.conf.arg(metavar="TITLE")] = None,
    pages: Annotated[int | None, tyro.conf.arg(metavar="N")] = None,
    dumps: Folder = None,
    collection: Folder = None,
    out: Folder = None,
    vectors: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    style: str = "plain",
    classes: int = CLASSES,
    contact: str = "",
    rate: float = DEFAULT_POLICY.rate,
    at_once: int = DEFAULT_POLICY.concurrency,
    json: bool = False,
) -> None:
    """Make a graph of a wiki: articles, their links, words and views.

    Articles are read breadth-first from the wiki's API, or from its public dumps, into
    a collection, which is a folder of tables, and the graph is built from the
    collection. A command that was interrupted resumes when it is run again. Several
    graphs can be built from a finished collection.

    Example: unalike crawl --api http://localhost/api.php --start Art --pages 9 --out a

    Args:
        api: Address of the wiki's api.php.
        start: Title of the first article; without one all articles of dumps are read.
        pages: Articles to read.
        dumps: Folder of dump files: page, redirect, pagelinks, linktarget, pageviews.
        collection: Folder of the collection; by default OUT.collection.
        out: Folder of the graph; it must not exist.
        vectors: Word vectors, a GloVe text file; without it there are no features.
        style: How texts become words: plain or paper.
        classes: Classes of about equal size by page views.
        contact: E-mail or web address for the operators of the wiki.
        rate: Maximum of requests per second; 0 sets no limit.
        at_once: Maximum of concurrent requests.
        json: Print one JSON document instead of lines.
    """
    if out is None:
        raise UserError("Name the folder to write (--out).")
    if out.exists():
        raise UserError(f"{out} exists already; name another folder or remove it.")
    check_build(vectors, style, classes)
    printed_notes: list[str] = []
    folder = collection or out.with_name(f"{out.name}.collection")
    with progress_bar() as bar:
        if api is not None and dumps is not None:
            raise UserError("A wiki is read by --api or from --dumps, not both.")
        if api is not None:
            policy = CrawlPolicy(contact=contact, rate=rate, concurrency=at_once)
            tables = read_api(api, start, pages, folder, policy, bar, printed_notes)
        elif dumps is not None:
            tables = collect(dumps, folder, start=start, pages=pages, progress=bar)
        elif collection is not None:
            tables = Collection.open(collection)
        else:
            raise UserError("Name a wiki (--api, --dumps) or a finished --collection.")
        stored = build_graph(
            tables, out, vectors=vectors, style=style, classes=classes, progress=bar
        )
    document = summary(folder, tables, stored)
    print_output(document, summary_text(document), json=json)
    print_notes(*(note for note in stored.remarks() if note not in printed_notes))


def read_api(
    api: str,
    start: str | None,
    pages: int | None,
    folder: Path,
    policy: CrawlPolicy,
    progress: Progress,
    printed_notes: list[str],
) -> Collection:
    """Crawl a wiki; notes are printed at once and added to `printed_notes`."""
    if start is None or pages is None:
        missing = "the first title (--start)" if start is None else "a number (--pages)"
        raise UserError(f"A crawl needs {missing}.")
    if not policy.contact:
        print_notes(
            "no --contact was given; Wikipedia and others may refuse to answer."
        )

    def print_note(note: str) -> None:
        printed_notes.append(note)
        print_notes(note)

    return crawl(
        api, start, pages, folder, policy=policy, progress=progress, on_note=print_note
    )


def summary(
    folder: Path, collection: Collection, stored: StoredGraph
) -> dict[str, Any]:
    """Sizes of the graph and its collection, as a JSON document."""
    keys = ("num_nodes", "num_edges", "num_features", "num_classes", "class_names")
    return {
        "folder": str(stored.folder),
        **{key: stored.metadata[key] for key in keys},
        "unlabelled": int((stored.array("labels") < 0).sum()),
        "collection": str(folder),
        "counts": collection.metadata["counts"],
        "remarks": stored.remarks(),
    }


def summary_text(document: dict[str, Any]) -> str:
    """A line about the graph, and one about its collection."""
    counts = document["counts"]
    return (
        f"{document['folder']}: {document['num_nodes']:,} articles, "
        f"{document['num_edges']:,} links, {document['num_features']:,} features, "
        f"{document['num_classes']} classes, {document['unlabelled']:,} unlabelled\n"
        f"{document['collection']}: {counts['aliases']:,} aliases, "
        f"{counts['missing']:,} missing titles; "
        "`unalike crawl --collection` builds other graphs of it"
    )
