"""`collect()`: run the stages, breadth-first subset, write the collection."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unalike.data.numba_utils import njit, sort_range
from unalike.errors import UserError, did_you_mean
from unalike.files import file_lock
from unalike.parallel import prefetch
from unalike.progress import NO_PROGRESS, Progress
from unalike.wiki.collection import (
    SCHEMAS,
    Collection,
    CollectionWriter,
    writing_collection,
)
from unalike.wiki.dumps.files import DumpFiles, StageCache, StageOutput
from unalike.wiki.dumps.pages import (
    PageIds,
    build_link_csr,
    count_titles,
    display_titles,
    load_titles,
    open_links,
    read_links,
    read_pages,
    read_redirects,
    read_targets,
)
from unalike.wiki.dumps.views import NO_VIEWS, read_views

# Ball: the articles around one of them, in the order in which a crawl meets them.


def find_title(start: str, names: pa.Array) -> int:
    """The number of a title; wikis begin titles with a capital letter."""
    spelled = start.strip().replace(" ", "_")
    for spelling in (spelled, spelled[:1].upper() + spelled[1:]):
        number = pc.index(names, pa.scalar(spelling, names.type)).as_py()
        if number >= 0:
            return number
    begin = pc.starts_with(names, spelled[:1].upper() + spelled[1:3])
    near = [name.replace("_", " ") for name in names.filter(begin)[:1000].to_pylist()]
    raise UserError(f"There is no page '{start}'.{did_you_mean(start, near)}")


def title_order(names: pa.Array) -> np.ndarray:
    """The numbers of titles in the order of their bytes as people write them."""
    return pc.array_sort_indices(display_titles(names)).to_numpy().astype(np.int32)


def bfs_articles(
    start: int,
    most: int,
    rows: tuple[np.ndarray, np.ndarray],
    leads: np.ndarray,
    names: pa.Array,
) -> np.ndarray:
    """Which articles are among the first that a crawl meets?

    Titles wait in a queue, from the start on. A title that leads to a new article
    lengthens the queue by the titles it is the first to link, in alphabetical order.
    """
    order = title_order(names)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    reached = np.zeros(len(rows[0]) - 1, np.bool_)
    bfs(start, most, *rows, leads, order, rank, reached)
    return reached


@njit()
def bfs(
    start: int,
    most: int,
    starts: np.ndarray,
    columns: np.ndarray,
    leads: np.ndarray,
    order: np.ndarray,
    rank: np.ndarray,
    reached: np.ndarray,
) -> None:
    """Mark the articles that are met first."""
    queue = np.empty(len(rank), np.int32)
    placed = np.zeros(len(rank), np.bool_)
    queue[0], placed[start] = start, True
    head, tail, count = 0, 1, 0
    while head < tail and count < most:
        title = queue[head]
        head += 1
        article = leads[title] if title < len(leads) else -1
        if article < 0 or reached[article]:
            continue
        reached[article] = True
        count += 1
        ranks = rank[columns[starts[article] : starts[article + 1]]]
        sort_range(ranks, ranks[:0], 0, len(ranks))
        for place in ranks:
            if not placed[order[place]]:
                placed[order[place]] = True
                queue[tail] = order[place]
                tail += 1


# Tables: what was found in dumps, written as the tables of a collection.


CHUNK_ROWS = 1 << 20
CHUNK_LINKS = 1 << 22
"""Links that are resolved at once."""


@dataclass(eq=False)
class DumpData:
    """A wiki: titles by number, first articles, then redirects, then missing ones."""

    pages: PageIds
    names: pa.Array
    leads: np.ndarray
    """The article that each page leads to."""
    starts: np.ndarray
    columns: np.ndarray
    """The titles that each article links."""
    views: np.ndarray | None
    remarks: list[str]
    """What their owner should know."""
    is_kept: np.ndarray = field(init=False)
    """Is the article part of the collection?"""
    is_linked: np.ndarray = field(init=False)
    """Do kept articles link the title? Filled while links are written."""

    def __post_init__(self) -> None:
        self.is_kept = np.ones(self.pages.num_articles, np.bool_)
        self.is_linked = np.zeros(len(self.names), np.bool_)

    def restrict_to(self, start: str, most: int | None) -> None:
        """Keep only articles that links lead to from a title, the first of them."""
        first = find_title(start, self.names[: len(self.pages)])
        count = self.pages.num_articles
        self.is_kept = bfs_articles(
            first,
            count if most is None else most,
            (self.starts[: count + 1], self.columns),
            self.leads,
            self.names,
        )
        if not self.is_kept.any():
            raise UserError(f"'{start}' is a redirect that leads to no article.")
        self.is_linked[first] = True

    def write(self, writer: CollectionWriter, progress: Progress) -> None:
        """Write all tables."""
        self._write_pages(writer)
        self._write_links(writer, progress)
        (linked,) = self.is_linked.nonzero()
        self._write_aliases(writer, linked[linked < len(self.pages)])
        missing = display_titles(
            self.names.take(linked[linked >= len(self.pages)])
        ).sort()
        # What is no text was replaced, so that two titles may have become the same.
        repeated = pc.equal(missing[1:], missing[:-1])
        new = pa.concat_arrays([pa.repeat(True, 1), pc.invert(repeated)])
        write_rows(writer, "missing", [missing.filter(new[: len(missing)])])

    def _write_pages(self, writer: CollectionWriter) -> None:
        (kept,) = self.is_kept.nonzero()
        with writer.table("pages") as table:
            for first in range(0, len(kept), CHUNK_ROWS):
                own = kept[first : first + CHUNK_ROWS]
                columns = [
                    self.pages.ids[own],
                    display_titles(self.names.take(own)),
                    pa.repeat("", len(own)),
                    self._views(own),
                ]
                table.write_table(rows("pages", columns))

    def _views(self, articles: np.ndarray) -> pa.Array:
        if self.views is None:
            return pa.nulls(len(articles))
        views = self.views[articles]
        return pa.array(views, mask=views == NO_VIEWS)

    def _write_aliases(self, writer: CollectionWriter, linked: np.ndarray) -> None:
        leads = self.leads[linked]
        lead_in = (linked >= self.pages.num_articles) & (leads >= 0)
        lead_in &= self.is_kept[np.maximum(leads, 0)]
        names = display_titles(self.names.take(linked[lead_in]))
        order = pc.array_sort_indices(names)
        ids = self.pages.ids[leads[lead_in]]
        write_rows(writer, "aliases", [names.take(order), ids[order.to_numpy()]])

    def _write_links(self, writer: CollectionWriter, progress: Progress) -> None:
        progress.stage("Writing links", len(self.columns), "links")
        with writer.table("links") as table:
            for pairs, done in prefetch(self._resolved()):
                ends = [self.pages.ids[pairs[:, end]] for end in range(2)]
                table.write_table(rows("links", ends))
                progress.advance(done)

    def _resolved(self) -> Iterator[tuple[np.ndarray, int]]:
        """Pairs of articles, in order, and how many links were looked at for them."""
        first, num_rows = 0, self.pages.num_articles
        while first < num_rows:
            fits = (
                np.searchsorted(self.starts, self.starts[first] + CHUNK_LINKS, "right")
                - 1
            )
            end = min(num_rows, max(first + 1, int(fits)))
            begin, close = self.starts[first], self.starts[end]
            own = np.array(self.columns[begin:close])
            starts = self.starts[first : end + 1] - begin
            yield (
                resolve_links(
                    own, starts, first, self.leads, self.is_kept, self.is_linked
                ),
                int(close - begin),
            )
            first = end


def rows(name: str, columns: list[pa.Array | np.ndarray]) -> pa.Table:
    """Some rows of a table, in the types that it has."""
    schema = SCHEMAS[name]
    typed = [
        pa.array(column).cast(entry.type)
        for column, entry in zip(columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(typed, schema=schema)


def write_rows(
    writer: CollectionWriter, name: str, columns: list[pa.Array | np.ndarray]
) -> None:
    """Write a whole table."""
    with writer.table(name) as table:
        for first in range(0, len(columns[0]), CHUNK_ROWS):
            table.write_table(
                rows(name, [c[first : first + CHUNK_ROWS] for c in columns])
            )


@njit()
def resolve_links(
    columns: np.ndarray,
    starts: np.ndarray,
    first: int,
    leads: np.ndarray,
    kept: np.ndarray,
    linked: np.ndarray,
) -> np.ndarray:
    """Turn links to titles into links to articles: distinct, ascending, no loops.

    Marks the titles that kept articles link.
    """
    pairs = np.empty((len(columns), 2), np.int32)
    count = 0
    for row in range(len(starts) - 1):
        if not kept[first + row]:
            continue
        own = columns[starts[row] : starts[row + 1]]
        length = 0
        for title in own:
            linked[title] = True
            article = leads[title] if title < len(leads) else -1
            if article >= 0 and article != first + row and kept[article]:
                own[length] = article
                length += 1
        sort_range(own, own[:0], 0, length)
        for i in range(length):
            if i == 0 or own[i] != own[i - 1]:
                pairs[count, 0] = first + row
                pairs[count, 1] = own[i]
                count += 1
    return pairs[:count]


# Build: from a folder of dump files to a collection, in one call.


def collect(
    folder: str | Path,
    out: str | Path,
    *,
    start: str | None = None,
    pages: int | None = None,
    progress: Progress = NO_PROGRESS,
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
    with file_lock(out):
        if out.exists():
            return _finished(out, about)
        work = StageCache.open(out, files)
        found = _read(files, work, progress)
        if start is not None:
            found.restrict_to(start, pages)
        with writing_collection(out) as writer:
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


def _read(files: DumpFiles, work: StageCache, progress: Progress) -> DumpData:
    """Run the stages that are not finished, and gather what all of them found."""
    table, by_id = open_links(files)
    known = work.get_or_run("pages", lambda stage: read_pages(files, stage, progress))
    leads = work.get_or_run(
        "redirects", lambda stage: read_redirects(files, known, stage, progress)
    )
    targets: StageOutput | None = None
    if by_id:
        targets = work.get_or_run(
            "targets", lambda stage: read_targets(files, known, stage, progress)
        )
    links = work.get_or_run(
        "links", lambda stage: read_links(table, known, targets, stage, progress)
    )
    missing = targets or links
    num_titles = count_titles(known) + count_titles(missing)
    placed = work.get_or_run(
        "placed", lambda stage: build_link_csr(links, num_titles, stage, progress)
    )
    views = read_views(files, work, known, progress)
    return DumpData(
        PageIds.load(known),
        pa.concat_arrays([load_titles(known), load_titles(missing)]),
        leads.load("leads"),
        placed.memmap("starts"),
        placed.memmap("columns"),
        views.load("views") if views else None,
        _remarks(views),
    )


def _remarks(views: StageOutput | None) -> list[str]:
    if views is None:
        return ["there was no file of page views, so that no article has any."]
    damaged = int(views.load("damaged"))
    told = [f"{damaged:,} lines of page views could not be read."] if damaged else []
    if not (views.load("views") != NO_VIEWS).any():
        told.append("no line of the page views names an article of this wiki.")
    return told
