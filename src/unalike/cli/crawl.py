"""`unalike crawl`: a wiki becomes a stored graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import tyro

from unalike.cli.console import OUT, print_json, print_notes, progress_bar
from unalike.data.store import StoredGraph
from unalike.errors import UserError
from unalike.progress import Progress
from unalike.wiki.api_client import CrawlPolicy
from unalike.wiki.build import CLASSES, build_graph, check_build
from unalike.wiki.collection import Collection
from unalike.wiki.crawl import crawl
from unalike.wiki.dumps import collect

Folder = Annotated[Path | None, tyro.conf.arg(metavar="DIR")]
USUAL = CrawlPolicy()


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
    rate: float = USUAL.rate,
    at_once: int = USUAL.concurrency,
    json: bool = False,
) -> None:
    """Make a graph of a wiki: articles, their links, words and views.

    Articles are read breadth-first from the wiki's API, or all at once from its public
    dumps, into a collection, a folder of tables beside the graph, and the graph is
    built from that. A command that was ended, however hard, goes on when it is given
    again. A finished collection can be built again in other ways.

    Example: unalike crawl --api http://localhost/api.php --start Art --pages 9 --out a

    Args:
        api: Address of the wiki's api.php.
        start: Title of the first article; dumps are read whole without one.
        pages: Articles to read.
        dumps: Folder of dump files: page, redirect, pagelinks, linktarget, pageviews.
        collection: Folder of the collection; by default OUT.collection.
        out: Folder of the graph; it must not exist.
        vectors: Word vectors, a GloVe text file; without it there are no features.
        style: How texts become words: plain or paper.
        classes: Classes of about equal size that the views are cut into.
        contact: E-mail or web address where the wiki's operators reach you.
        rate: Requests a second at most; 0 sets no limit.
        at_once: Requests that may be under way together.
        json: Print one JSON document instead of lines.
    """
    if out is None:
        raise UserError("Name the folder to write (--out).")
    if out.exists():
        raise UserError(f"{out} exists already; name another folder or remove it.")
    check_build(vectors, style, classes)
    heard: list[str] = []
    place = collection or out.with_name(f"{out.name}.collection")
    with progress_bar() as bar:
        if api is not None and dumps is not None:
            raise UserError("A wiki is read by --api or from --dumps, not both.")
        if api is not None:
            policy = CrawlPolicy(contact=contact, rate=rate, concurrency=at_once)
            found = read_api(api, start, pages, place, policy, bar, heard)
        elif dumps is not None:
            found = collect(dumps, place, start=start, pages=pages, progress=bar)
        elif collection is not None:
            found = Collection.open(collection)
        else:
            raise UserError("Name a wiki (--api, --dumps) or a finished --collection.")
        stored = build_graph(
            found, out, vectors=vectors, style=style, classes=classes, progress=bar
        )
    told = summary(place, found, stored)
    if json:
        print_json(told)
    else:
        print_summary(told)
    print_notes(remark for remark in stored.remarks() if remark not in heard)


def read_api(
    api: str,
    start: str | None,
    pages: int | None,
    place: Path,
    policy: CrawlPolicy,
    progress: Progress,
    heard: list[str],
) -> Collection:
    """Crawl a wiki; what it lacks is told at once, and heard."""
    if start is None or pages is None:
        missing = "the first title (--start)" if start is None else "a number (--pages)"
        raise UserError(f"A crawl needs {missing}.")
    if not policy.contact:
        print_notes(
            ["no --contact was given; Wikipedia and others may refuse to answer."]
        )

    def tell(remark: str) -> None:
        heard.append(remark)
        print_notes([remark])

    return crawl(
        api, start, pages, place, policy=policy, progress=progress, on_note=tell
    )


def summary(place: Path, collection: Collection, stored: StoredGraph) -> dict[str, Any]:
    """What was made, as the JSON document tells it."""
    keys = ("num_nodes", "num_edges", "num_features", "num_classes", "class_names")
    return {
        "folder": str(stored.folder),
        **{key: stored.metadata[key] for key in keys},
        "unlabelled": int((stored.array("labels") < 0).sum()),
        "collection": str(place),
        "counts": collection.metadata["counts"],
        "remarks": stored.remarks(),
    }


def print_summary(told: dict[str, Any]) -> None:
    """A line about the graph, and one about what it was made of."""
    counts = told["counts"]
    lines = (
        f"{told['folder']}: {told['num_nodes']:,} articles, {told['num_edges']:,} "
        f"links, {told['num_features']:,} features, {told['num_classes']} classes, "
        f"{told['unlabelled']:,} unlabelled",
        f"{told['collection']}: {counts['aliases']:,} aliases, {counts['missing']:,} "
        "missing titles; `unalike crawl --collection` builds other graphs of it",
    )
    for line in lines:
        OUT.print(line, soft_wrap=True, markup=False)
