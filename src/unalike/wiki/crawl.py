"""Resumable breadth-first crawl with threads; export to a collection."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from unalike.errors import UserError
from unalike.files import file_lock
from unalike.progress import NO_PROGRESS, Progress
from unalike.wiki.api_client import ApiClient, CrawlPolicy
from unalike.wiki.collection import SCHEMAS, Collection, writing_collection
from unalike.wiki.crawl_state import Batch, CrawlState, Database, open_database
from unalike.wiki.responses import (
    QueryResponse,
    SiteInfo,
    TitleStatus,
    fetch_site_info,
    normalized_title,
    read_answer,
)

# Crew: threads that ask for batches, and one that writes down what they hear.


BATCH_TITLES = 50
"""Titles in a request: what a wiki allows to everybody."""
TITLE_PARAMS = {"action": "query", "redirects": "1"}


class CrawlWorkers:
    """The work of a crawl: articles are read, then the titles left over looked up."""

    def __init__(
        self,
        state: CrawlState,
        api: ApiClient,
        question: dict[str, str],
        progress: Progress,
    ) -> None:
        self.state = state
        self.api = api
        self.questions = {True: question, False: TITLE_PARAMS}
        self.progress = progress
        self.pending = deque(state.unfinished())
        self.begun_at = time.monotonic()

    def run(self) -> None:
        """Go on until every article that is wanted is read and every link known."""
        state = self.state
        self.progress.stage("reading", state.max_pages, "pages")
        self.progress.advance(state.num_pages, self._note())
        self._all(reads=True)
        self.progress.stage("looking up links", state.queue, "titles")
        self._all(reads=False)

    def _all(self, *, reads: bool) -> None:
        at_once = self.api.manners.at_once
        running: dict[Future[QueryResponse], Batch] = {}
        with ThreadPoolExecutor(at_once) as pool:
            try:
                while True:
                    while len(running) < at_once and (
                        batch := self._next(reads, busy=bool(running))
                    ):
                        running[pool.submit(self._ask, batch)] = batch
                    if not running:
                        return
                    for future in wait(running, None, FIRST_COMPLETED).done:
                        self._record(running.pop(future), future.result())
            except BaseException:
                self.api.close()
                raise

    def _next(self, reads: bool, *, busy: bool) -> Batch | None:
        """The rest of a batch, or a new one; None where answers must come first."""
        if self.pending:
            return self.pending.popleft()
        most = min(BATCH_TITLES, self.state.remaining) if reads else BATCH_TITLES
        size = min(most, self.state.queue)
        if size <= 0 or (reads and busy and size < most):
            return None
        return self.state.begin(size, reads=reads)

    def _ask(self, batch: Batch) -> QueryResponse:
        titles = list(batch.titles)
        question = {**self.questions[batch.reads], "titles": "|".join(titles)}
        answer = self.api.query(
            question | batch.onward, partial(read_answer, titles=titles)
        )
        if batch.onward and answer.continuation == batch.onward:
            raise UserError(
                f"{self.api.address} goes on with the same answer for ever."
            )
        return answer

    def _record(self, batch: Batch, answer: QueryResponse) -> None:
        pages = self.state.num_pages
        rest = self.state.record(batch, answer)
        if rest:
            self.pending.appendleft(rest)
        done = self.state.num_pages - pages if batch.reads else len(batch.titles)
        self.progress.advance(0 if rest else done, self._note())

    def _note(self) -> str:
        seconds = max(time.monotonic() - self.begun_at, 1e-9)
        rate = self.api.pace.num_requests / seconds
        links, queue = self.state.num_links, self.state.queue
        return f"· {links:,} links · {queue:,} queued · {rate:.1f} requests/s"


# Export: the state of a finished crawl, written as a collection.


ROWS = 1 << 16

TABLE_QUERIES = {
    "pages": (
        "SELECT page_id, title, COALESCE(intro, ''), views FROM page"
        " WHERE position IS NOT NULL ORDER BY page_id"
    ),
    "aliases": (
        "SELECT title.title, page_id FROM title JOIN page USING (page_id)"
        f" WHERE fate = {TitleStatus.REDIRECT.value} AND position IS NOT NULL"
        " ORDER BY title.title"
    ),
    "missing": (
        f"SELECT title FROM title WHERE fate = {TitleStatus.MISSING.value} ORDER BY title"
    ),
}
"""The tables that SQLite gives in their order."""

LINKS = """
SELECT source, title.page_id FROM link
JOIN title ON title.number = target
JOIN page AS here ON here.page_id = source AND here.position IS NOT NULL
JOIN page AS there ON there.page_id = title.page_id AND there.position IS NOT NULL
WHERE title.page_id <> source ORDER BY source
"""


def write_collection(
    database: Database, out: Path, about: dict[str, Any]
) -> Collection:
    """Write what was crawled; the folder appears whole or not at all."""
    with writing_collection(out) as writer:
        for name, question in TABLE_QUERIES.items():
            with writer.table(name) as table:
                for rows in _row_chunks(database.execute(question)):
                    table.write_batch(_batch(name, zip(*rows, strict=True)))
        with writer.table("links") as table:
            for pairs in _by_source(database.execute(LINKS)):
                table.write_batch(_batch("links", np.unique(pairs, axis=0).T))
        return writer.commit(about)


def _row_chunks(rows: sqlite3.Cursor) -> Iterator[list[tuple[Any, ...]]]:
    while stretch := rows.fetchmany(ROWS):
        yield stretch


def _batch(name: str, columns: Any) -> pa.RecordBatch:
    schema = SCHEMAS[name]
    arrays = [
        pa.array(column, type=field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _by_source(rows: sqlite3.Cursor) -> Iterator[np.ndarray]:
    """Pairs in stretches that hold all of the pairs of their sources."""
    held = np.empty((0, 2), np.int64)
    for stretch in _row_chunks(rows):
        held = np.concatenate([held, np.array(stretch, np.int64)])
        whole = np.searchsorted(held[:, 0], held[-1, 0])
        if whole:
            yield held[:whole]
        held = held[whole:]
    if len(held):
        yield held


# Crawl: breadth-first over a wiki, from one article to as many as are wanted.


DEFAULT_POLICY = CrawlPolicy()
TITLE_BYTES = 255


def ignore(_: str) -> None:
    """Hear a remark and do nothing about it."""


def crawl(
    api: str,
    start: str,
    pages: int,
    out: Path,
    *,
    manners: CrawlPolicy = DEFAULT_POLICY,
    progress: Progress = NO_PROGRESS,
    tell: Callable[[str], None] = ignore,
) -> Collection:
    """Read articles from a wiki's action API into a collection, or go on with that.

    The order is that of a queue: the articles that the first one links, by title, then
    those that they link. What is read does not depend on how much goes on at once.
    """
    asked = {"wiki": api, "start": start, "pages": pages}
    _check(start, pages)
    out = out.absolute()
    folder = out.with_name(f".{out.name}.crawl")
    with file_lock(out):
        if out.exists():
            shutil.rmtree(folder, ignore_errors=True)
            return _finished(out, asked)
        with (
            open_database(folder / "state.db") as database,
            _asking(api, manners) as wiki,
        ):
            site = _resume_or_start(database, asked, wiki)
            for remark in site.notes():
                tell(remark)
            state = CrawlState(database, pages)
            CrawlWorkers(state, wiki, site.page_params(), progress).run()
            if state.num_pages:
                collection = write_collection(
                    database, out, _about(database, asked, site)
                )
        shutil.rmtree(folder)
    if not state.num_pages:
        raise UserError(f"{api} has no article '{start}'.")
    return collection


def _check(start: str, pages: int) -> None:
    if pages < 1:
        raise UserError(f"A crawl is for 1 or more pages, not {pages}.")
    if not start.strip() or "|" in start or len(start.encode()) > TITLE_BYTES:
        raise UserError(f"'{start[:99]}' cannot be the title of an article.")


@contextmanager
def _asking(address: str, manners: CrawlPolicy) -> Iterator[ApiClient]:
    api = ApiClient(address, manners)
    try:
        yield api
    finally:
        api.close()


def _resume_or_start(
    database: Database, asked: dict[str, Any], api: ApiClient
) -> SiteInfo:
    """What the wiki says of itself; a crawl that was begun must be the same one."""
    begun = database.get_meta("asked")
    if begun is not None:
        _compare(begun, asked, "a crawl was begun here")
        return SiteInfo(**database.get_meta("site"))
    site = fetch_site_info(api)
    start = api.query({**TITLE_PARAMS, "titles": asked["start"]}, normalized_title)
    with database.transaction():
        database.set_meta(asked=asked, site=asdict(site), started=_now())
        database.execute(
            "INSERT INTO title (title, place) VALUES (?, 0)", start or asked["start"]
        )
    return site


def _finished(out: Path, asked: dict[str, Any]) -> Collection:
    collection = Collection.open(out)
    _compare(collection.about, asked, f"{out} is a collection")
    return collection


def _compare(begun: dict[str, Any], asked: dict[str, Any], what: str) -> None:
    for name, value in asked.items():
        if begun.get(name) != value:
            raise UserError(
                f"{what} with the {name} '{begun.get(name)}', not '{value}'; "
                "name another folder."
            )


def _about(database: Database, asked: dict[str, Any], site: SiteInfo) -> dict[str, Any]:
    return {
        **asked,
        "site": asdict(site),
        "dates": {
            "started": database.get_meta("started"),
            "finished": _now(),
            "views_from": database.get_meta("first_day"),
            "views_to": database.get_meta("last_day"),
        },
        "remarks": list(site.notes()),
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
