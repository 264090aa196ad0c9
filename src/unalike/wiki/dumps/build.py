"""Build a collection from wiki dumps: all articles, or a breadth-first subset."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, no_type_check

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unalike.data.csr import row_blocks
from unalike.data.numba_utils import njit, sort_range
from unalike.errors import UserError, did_you_mean
from unalike.files import file_lock
from unalike.parallel import prefetch
from unalike.progress import NO_PROGRESS, Progress
from unalike.wiki.collection import Collection, CollectionWriter, writing_collection
from unalike.wiki.dumps.files import DumpFiles, StageCache, StageOutput
from unalike.wiki.dumps.pages import (
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

CHUNK_ROWS = 1 << 20
CHUNK_LINKS = 1 << 22
"""Links per chunk whose redirects are resolved."""


def collect(
    folder: str | Path,
    out: str | Path,
    *,
    start: str | None = None,
    pages: int | None = None,
    progress: Progress = NO_PROGRESS,
) -> Collection:
    """Read the dump files in a folder into a collection, or resume an earlier run.

    With `start`, only articles that links reach from this title; with `pages`, the
    first of them in the order of a crawl. Finished stages are cached next to the
    collection until it is complete, so that another run does not repeat them.
    """
    if pages is not None and (start is None or pages < 1):
        raise UserError(
            f"A number of pages needs a start title and is 1 or more, not "
            f"{start} and {pages}."
        )
    files = DumpFiles.find(Path(folder))
    request: dict[str, Any] = {"wiki": files.wiki, "start": start, "pages": pages}
    request["files"] = files.sizes()
    out = Path(out).absolute()
    with file_lock(out):
        if out.exists():
            collection = Collection.open(out)
            if not request.items() <= collection.metadata.items():
                raise UserError(
                    f"{out} is a collection of other dumps or pages; "
                    "name another folder."
                )
            return collection
        cache = StageCache.open(out, files)
        dump = _read(files, cache, progress)
        if start is not None:
            dump.restrict_to(start, pages)
        with writing_collection(out) as writer:
            dump.write(writer, progress)
            metadata = {"dates": files.dates(), "remarks": dump.remarks}
            collection = writer.commit(request | metadata)
        shutil.rmtree(cache.folder)
    return collection


def _read(files: DumpFiles, cache: StageCache, progress: Progress) -> DumpData:
    """Run the stages that are not cached, and load their output."""
    table, by_id = open_links(files)
    known = cache.get_or_run("pages", lambda stage: read_pages(files, stage, progress))
    redirects = cache.get_or_run(
        "redirects", lambda stage: read_redirects(files, known, stage, progress)
    )
    targets: StageOutput | None = None
    if by_id:
        targets = cache.get_or_run(
            "targets", lambda stage: read_targets(files, known, stage, progress)
        )
    links = cache.get_or_run(
        "links", lambda stage: read_links(table, known, targets, stage, progress)
    )
    missing = targets or links
    num_titles = count_titles(known) + count_titles(missing)
    csr = cache.get_or_run(
        "placed", lambda stage: build_link_csr(links, num_titles, stage, progress)
    )
    views = read_views(files, cache, known, progress)
    return DumpData(
        known.load("ids"),
        int(known.load("num_articles")),
        pa.concat_arrays([load_titles(known), load_titles(missing)]),
        redirects.load("leads"),
        csr.memmap("starts"),
        csr.memmap("columns"),
        views.load("views") if views else None,
        _remarks(views),
    )


def _remarks(views: StageOutput | None) -> list[str]:
    if views is None:
        return ["there was no file of page views, so that no article has any."]
    damaged = int(views.load("damaged"))
    remarks = [f"{damaged:,} lines of page views could not be read."] if damaged else []
    if not (views.load("views") != NO_VIEWS).any():
        remarks.append("no line of the page views names an article of this wiki.")
    return remarks


@dataclass(eq=False)
class DumpData:
    """Titles of a wiki by index, first articles, then redirects, then missing ones."""

    page_ids: np.ndarray
    num_articles: int
    names: pa.Array
    article_of: np.ndarray
    """Article index of each page after redirects, -1 for none."""
    indptr: np.ndarray
    indices: np.ndarray
    """Titles that each article links (CSR)."""
    views: np.ndarray | None
    remarks: list[str]
    """Notes for users, stored with the collection."""
    selected: np.ndarray = field(init=False)
    """Whether the article is part of the collection."""
    is_linked: np.ndarray = field(init=False)
    """Whether a selected article links the title; filled while links are written."""

    def __post_init__(self) -> None:
        self.selected = np.ones(self.num_articles, np.bool_)
        self.is_linked = np.zeros(len(self.names), np.bool_)

    def restrict_to(self, start: str, max_pages: int | None) -> None:
        """Select the first articles of a breadth-first search from a title.

        Titles wait in a queue. A title of a new article appends the titles that this
        article is the first to link, in alphabetical order.
        """
        first = find_title(start, self.names[: len(self.page_ids)])
        titles = display_titles(self.names)
        order = pc.array_sort_indices(titles).to_numpy().astype(np.int32)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order), dtype=np.int32)
        self.selected[:] = False
        limit = self.num_articles if max_pages is None else max_pages
        csr = (self.indptr[: self.num_articles + 1], self.indices)
        bfs(first, limit, *csr, self.article_of, order, rank, self.selected)
        if not self.selected.any():
            raise UserError(f"'{start}' is a redirect that leads to no article.")
        self.is_linked[first] = True

    def write(self, writer: CollectionWriter, progress: Progress) -> None:
        writer.write("pages", self._pages())
        writer.write("links", self._links(progress))
        (linked,) = self.is_linked.nonzero()
        known = linked < len(self.page_ids)
        writer.write("aliases", chunks(*self._aliases(linked[known])))
        missing = display_titles(self.names.take(linked[~known])).sort()
        # Invalid UTF-8 was replaced, so that two titles may have become the same.
        repeated = pc.equal(missing[1:], missing[:-1])
        new = pa.concat_arrays([pa.repeat(True, 1), pc.invert(repeated)])
        writer.write("missing", chunks(missing.filter(new[: len(missing)])))

    def _pages(self) -> Iterator[list[pa.Array | np.ndarray]]:
        for (articles,) in chunks(*self.selected.nonzero()):
            views = pa.nulls(len(articles))
            if self.views is not None:
                counts = self.views[articles]
                views = pa.array(counts, mask=counts == NO_VIEWS)
            titles = display_titles(self.names.take(articles))
            intros = pa.repeat("", len(articles))
            yield [self.page_ids[articles], titles, intros, views]

    def _aliases(self, linked: np.ndarray) -> tuple[pa.Array, np.ndarray]:
        articles = self.article_of[linked]
        mask = (linked >= self.num_articles) & (articles >= 0)
        mask &= self.selected[np.maximum(articles, 0)]
        names = display_titles(self.names.take(linked[mask]))
        order = pc.array_sort_indices(names)
        ids = self.page_ids[articles[mask]]
        return names.take(order), ids[order.to_numpy()]

    def _links(self, progress: Progress) -> Iterator[list[np.ndarray]]:
        progress.stage("Writing links", len(self.indices), "links")
        for pairs, num_links in prefetch(self._resolved_links()):
            yield [self.page_ids[pairs[:, side]] for side in range(2)]
            progress.advance(num_links)

    def _resolved_links(self) -> Iterator[tuple[np.ndarray, int]]:
        """Yield sorted pairs of articles, and the number of links read for them."""
        indptr = self.indptr[: self.num_articles + 1]
        masks = (self.article_of, self.selected, self.is_linked)
        for first, end in row_blocks(indptr, CHUNK_LINKS):
            titles = np.array(self.indices[indptr[first] : indptr[end]])
            offsets = indptr[first : end + 1] - indptr[first]
            yield resolve_links(titles, offsets, first, *masks), len(titles)


def chunks(*columns: pa.Array | np.ndarray) -> Iterator[list[pa.Array | np.ndarray]]:
    """Yield columns in chunks of rows."""
    for first in range(0, len(columns[0]), CHUNK_ROWS):
        yield [column[first : first + CHUNK_ROWS] for column in columns]


def find_title(start: str, names: pa.Array) -> int:
    """Return the index of a title; its first letter may be lower case."""
    title = start.strip().replace(" ", "_")
    capitalized = title[:1].upper() + title[1:]
    for name in (title, capitalized):
        index = pc.index(names, pa.scalar(name, names.type)).as_py()
        if index >= 0:
            return index
    similar = names.filter(pc.starts_with(names, capitalized[:3]))[:1000]
    hint = did_you_mean(start, display_titles(similar).to_pylist())
    raise UserError(f"There is no page '{start}'.{hint}")


@njit()
@no_type_check
def bfs(start, max_pages, indptr, indices, article_of, order, rank, reached):
    """Mark the first articles of a breadth-first search as reached."""
    queue = np.empty(len(rank), np.int32)
    queued = np.zeros(len(rank), np.bool_)
    queue[0], queued[start] = start, True
    head, tail, count = 0, 1, 0
    while head < tail and count < max_pages:
        title = queue[head]
        head += 1
        article = article_of[title] if title < len(article_of) else -1
        if article < 0 or reached[article]:
            continue
        reached[article] = True
        count += 1
        ranks = rank[indices[indptr[article] : indptr[article + 1]]]
        sort_range(ranks, ranks[:0], 0, len(ranks))
        for i in ranks:
            linked = order[i]
            if not queued[linked]:
                queued[linked] = True
                queue[tail] = linked
                tail += 1


@njit()
@no_type_check
def resolve_links(titles, offsets, first, article_of, selected, is_linked):
    """Resolve linked titles to articles: distinct, ascending, without self-loops.

    Marks the titles that selected articles link. Row i is the article first + i.
    """
    pairs = np.empty((len(titles), 2), np.int32)
    count = 0
    for i in range(len(offsets) - 1):
        source = first + i
        if not selected[source]:
            continue
        row = titles[offsets[i] : offsets[i + 1]]
        length = 0
        for title in row:
            is_linked[title] = True
            article = article_of[title] if title < len(article_of) else -1
            if article >= 0 and article != source and selected[article]:
                row[length] = article
                length += 1
        sort_range(row, row[:0], 0, length)
        for j in range(length):
            if j == 0 or row[j] != row[j - 1]:
                pairs[count, 0] = source
                pairs[count, 1] = row[j]
                count += 1
    return pairs[:count]
