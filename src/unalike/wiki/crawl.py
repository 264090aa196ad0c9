"""Crawl a wiki breadth-first by its API; a crawl that was stopped resumes."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from unalike.errors import UserError
from unalike.files import file_lock
from unalike.progress import NO_PROGRESS, Progress
from unalike.wiki.api_client import ApiClient, CrawlPolicy
from unalike.wiki.collection import BATCH_ROWS, Collection, writing_collection
from unalike.wiki.crawl_state import Batch, CrawlState, Database, open_database
from unalike.wiki.responses import (
    QueryResponse,
    SiteInfo,
    TitleStatus,
    fetch_site_info,
    normalized_title,
    parse_query,
)

BATCH_TITLES = 50
"""Titles per request: the limit of MediaWiki for everybody."""
MAX_TITLE_BYTES = 255
MAX_STALLED = 100
"""Responses to a batch one after the other that add nothing to what was sent."""
TITLE_PARAMS = {"action": "query", "redirects": "1"}
DEFAULT_POLICY = CrawlPolicy()

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
        f"SELECT title FROM title WHERE fate = {TitleStatus.MISSING.value}"
        " ORDER BY title"
    ),
}
"""Queries of the tables that SQLite sorts."""

LINKS_QUERY = """
SELECT source, title.page_id FROM link
JOIN title ON title.number = target
JOIN page AS a ON a.page_id = source AND a.position IS NOT NULL
JOIN page AS b ON b.page_id = title.page_id AND b.position IS NOT NULL
WHERE title.page_id <> source ORDER BY source
"""


def crawl(
    api: str,
    start: str,
    pages: int,
    out: Path,
    *,
    policy: CrawlPolicy = DEFAULT_POLICY,
    progress: Progress = NO_PROGRESS,
    on_note: Callable[[str], None] = lambda note: None,
) -> Collection:
    """Read articles from a wiki's action API into a collection, or resume a crawl.

    The order is breadth-first: the articles that the first one links, by title, then
    those that they link. It does not depend on the number of concurrent requests.
    """
    request = {"wiki": api, "start": start, "pages": pages}
    if pages < 1:
        raise UserError(f"A crawl reads 1 or more pages, not {pages}.")
    if not start.strip() or "|" in start or len(start.encode()) > MAX_TITLE_BYTES:
        raise UserError(f"'{start[:99]}' cannot be the title of an article.")
    out = out.absolute()
    folder = out.with_name(f".{out.name}.crawl")
    with file_lock(out):
        if out.exists():
            shutil.rmtree(folder, ignore_errors=True)
            collection = Collection.open(out)
            _check_same(collection.metadata, request, f"{out} is a collection")
            return collection
        with (
            open_database(folder / "state.db") as database,
            closing(ApiClient(api, policy)) as client,
        ):
            site = _resume_or_start(database, request, client)
            for note in site.notes():
                on_note(note)
            state = CrawlState(database, pages)
            CrawlWorkers(state, client, site.page_params(), progress).run()
            if state.num_pages:
                metadata = _metadata(database, request, site)
                collection = write_collection(database, out, metadata)
        shutil.rmtree(folder)
    if not state.num_pages:
        raise UserError(f"{api} has no article '{start}'.")
    return collection


def _resume_or_start(
    database: Database, request: dict[str, Any], api: ApiClient
) -> SiteInfo:
    """Return the site info, from the state of the same crawl if it was started."""
    previous = database.get_meta("asked")
    if previous is not None:
        _check_same(previous, request, "a crawl was started in this folder")
        return SiteInfo(**database.get_meta("site"))
    site = fetch_site_info(api)
    start = api.query({**TITLE_PARAMS, "titles": request["start"]}, normalized_title)
    with database.transaction():
        database.set_meta(asked=request, site=asdict(site), started=_now())
        database.execute(
            "INSERT INTO title (title, place) VALUES (?, 0)",
            (start or request["start"],),
        )
    return site


def _check_same(previous: dict[str, Any], request: dict[str, Any], what: str) -> None:
    for name, value in request.items():
        if previous.get(name) != value:
            raise UserError(
                f"{what} with the {name} '{previous.get(name)}', not '{value}'; "
                "name another folder."
            )


def _metadata(
    database: Database, request: dict[str, Any], site: SiteInfo
) -> dict[str, Any]:
    return {
        **request,
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


@dataclass(eq=False)
class CrawlWorkers:
    """Threads of a crawl: they read articles, then the status of the other titles."""

    state: CrawlState
    api: ApiClient
    page_params: dict[str, str]
    progress: Progress
    pending: deque[Batch] = field(init=False)
    received: dict[int, set[str]] = field(default_factory=dict)
    """Continuations and parts that the wiki has sent for open batches."""
    stalled: Counter[int] = field(default_factory=Counter)
    """Responses in a row that added nothing, by batch."""
    start_time: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.pending = deque(self.state.unfinished())

    def run(self) -> None:
        """Read all articles of the crawl and the status of all linked titles."""
        self.progress.stage("reading", self.state.max_pages, "pages")
        self.progress.advance(self.state.num_pages, self._note())
        self._run_batches(reads=True)
        self.progress.stage("looking up links", self.state.queue_length, "titles")
        self._run_batches(reads=False)

    def _run_batches(self, *, reads: bool) -> None:
        concurrency = self.api.policy.concurrency
        running: dict[Future[QueryResponse], Batch] = {}
        with ThreadPoolExecutor(concurrency) as pool:
            try:
                while True:
                    while len(running) < concurrency and (
                        batch := self._next(reads, busy=bool(running))
                    ):
                        running[pool.submit(self._query, batch)] = batch
                    if not running:
                        return
                    for future in wait(running, None, FIRST_COMPLETED).done:
                        self._record(running.pop(future), future.result())
            except BaseException:
                self.api.close()
                raise

    def _next(self, reads: bool, *, busy: bool) -> Batch | None:
        """Return an incomplete batch or a new one; None to wait for responses."""
        if self.pending:
            return self.pending.popleft()
        max_size = min(BATCH_TITLES, self.state.remaining) if reads else BATCH_TITLES
        size = min(max_size, self.state.queue_length)
        if size <= 0 or (reads and busy and size < max_size):
            return None
        return self.state.next_batch(size, reads=reads)

    def _query(self, batch: Batch) -> QueryResponse:
        titles = list(batch.titles)
        params = self.page_params if batch.reads else TITLE_PARAMS
        params = {**params, "titles": "|".join(titles), **batch.continuation}
        return self.api.query(params, partial(parse_query, titles=titles))

    def _record(self, batch: Batch, response: QueryResponse) -> None:
        pages = self.state.num_pages
        self._check_progress(batch, response)
        incomplete = self.state.record(batch, response)
        if incomplete:
            self.pending.appendleft(incomplete)
        done = self.state.num_pages - pages if batch.reads else len(batch.titles)
        self.progress.advance(0 if incomplete else done, self._note())

    def _check_progress(self, batch: Batch, response: QueryResponse) -> None:
        """Raise if a wiki continues a response without end."""
        if response.continuation is None:
            self.received.pop(batch.number, None)
            self.stalled.pop(batch.number, None)
            return
        received = self.received.setdefault(batch.number, set())
        token = repr(sorted(response.continuation.items()))
        parts = {repr(part) for part in response.parts if part.has_content}
        self.stalled[batch.number] += 1
        if parts - received:
            self.stalled[batch.number] = 0
        if token in received or self.stalled[batch.number] > MAX_STALLED:
            raise UserError(
                f"{self.api.url} repeats the same response without end; run the same "
                "command later to resume."
            )
        received |= parts | {token}

    def _note(self) -> str:
        seconds = max(time.monotonic() - self.start_time, 1e-9)
        rate = self.api.rate_limiter.num_requests / seconds
        links, queue = self.state.num_links, self.state.queue_length
        return f"· {links:,} links · {queue:,} queued · {rate:.1f} requests/s"


def write_collection(
    database: Database, out: Path, metadata: dict[str, Any]
) -> Collection:
    """Write the pages, links and titles of a finished crawl as a collection."""
    with writing_collection(out) as writer:
        for name, query in TABLE_QUERIES.items():
            chunks = _row_chunks(database.execute(query))
            writer.write(name, (zip(*rows, strict=True) for rows in chunks))
        by_source = _by_source(database.execute(LINKS_QUERY))
        writer.write("links", (np.unique(pairs, axis=0).T for pairs in by_source))
        return writer.commit(metadata)


def _row_chunks(rows: sqlite3.Cursor) -> Iterator[list[tuple[Any, ...]]]:
    while chunk := rows.fetchmany(BATCH_ROWS):
        yield chunk


def _by_source(rows: sqlite3.Cursor) -> Iterator[np.ndarray]:
    """Yield chunks of pairs that have all targets of their sources."""
    pairs = np.empty((0, 2), np.int64)
    for chunk in _row_chunks(rows):
        pairs = np.concatenate([pairs, np.array(chunk, np.int64)])
        complete = np.searchsorted(pairs[:, 0], pairs[-1, 0])
        yield pairs[:complete]
        pairs = pairs[complete:]
    yield pairs
