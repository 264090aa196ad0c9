"""State of a crawl in SQLite: queue, titles, pages, links and open requests."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from unalike.errors import UserError
from unalike.wiki.responses import PagePart, QueryResponse

SCHEMA = """
CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE title (
    number INTEGER PRIMARY KEY,
    title TEXT NOT NULL UNIQUE,
    place INTEGER UNIQUE,
    fate INTEGER,
    page_id INTEGER
);
CREATE TABLE page (
    page_id INTEGER PRIMARY KEY,
    title TEXT NOT NULL,
    intro TEXT,
    views INTEGER,
    position INTEGER UNIQUE
);
CREATE TABLE link (
    source INTEGER, target INTEGER, PRIMARY KEY (source, target)
) WITHOUT ROWID;
CREATE TABLE batch (
    number INTEGER PRIMARY KEY, first INTEGER, last INTEGER, reads INTEGER, onward TEXT
)
"""
"""The tables of a crawl.

`title.place` is the position of a title in the queue, set once an article with a
position links it. `page.position` is the order of articles, set once all earlier titles
in the queue are resolved. Both depend on the wiki alone, not on the order of responses.
`title.fate` is a `TitleStatus`. A link goes from a page id to the number of a title. A
batch is a range of the queue whose request is open; `onward` has the parameters that
continue it.
"""


class Database(sqlite3.Connection):
    """An open database, with metadata by name next to the tables."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, isolation_level=None)
        self.execute("PRAGMA journal_mode = WAL")
        self.execute("PRAGMA synchronous = NORMAL")
        if not self.scalar("SELECT COUNT(*) FROM sqlite_master"):
            with self.transaction():
                for statement in SCHEMA.split(";"):
                    self.execute(statement)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit the changes of a `with` block, or roll them back after an error."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self.in_transaction:
                self.execute("ROLLBACK")
            raise
        self.execute("COMMIT")

    def scalar(self, statement: str, *values: Any) -> Any:
        row = self.execute(statement, values).fetchone()
        return row[0] if row else None

    def get_meta(self, name: str, default: Any = None) -> Any:
        text = self.scalar("SELECT value FROM fact WHERE name = ?", name)
        return default if text is None else json.loads(text)

    def set_meta(self, **metadata: Any) -> None:
        rows = [(name, json.dumps(value)) for name, value in metadata.items()]
        self.executemany("INSERT OR REPLACE INTO fact VALUES (?, ?)", rows)


@contextmanager
def open_database(path: Path) -> Iterator[Database]:
    """Open a database for a `with` block; errors name the file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(Database(path)) as database:
            yield database
    except sqlite3.Error as error:
        raise UserError(f"{path}, the state of the crawl: {error}.") from None


@dataclass(frozen=True)
class Batch:
    """Titles of one request."""

    number: int
    titles: dict[str, int]
    """The number of each title."""
    reads: bool
    """Whether articles are read, or only the status of the titles."""
    continuation: dict[str, str] = field(default_factory=dict)
    """Parameters of the next request that continue the response."""


class CrawlState:
    """Queue, articles and links of a crawl; changes are committed to the database."""

    def __init__(self, database: Database, max_pages: int) -> None:
        self.database = database
        self.max_pages = max_pages
        self.num_dispatched: int = database.get_meta("begun", 0)
        """Titles that were taken from the queue."""
        self.num_resolved: int = database.get_meta("settled", 0)
        """Titles at the front of the queue whose status is known."""
        self.num_pages: int = database.scalar("SELECT COUNT(position) FROM page")
        self.num_queued: int = database.scalar("SELECT COUNT(place) FROM title")
        self.num_links: int = database.scalar("SELECT COUNT(*) FROM link")

    @property
    def queue_length(self) -> int:
        """Titles that were not requested yet."""
        return self.num_queued - self.num_dispatched

    @property
    def remaining(self) -> int:
        """Titles that can be requested without exceeding `max_pages`."""
        open_titles = self.num_dispatched - self.num_resolved
        return self.max_pages - self.num_pages - open_titles

    def unfinished(self) -> list[Batch]:
        """Return the batches that were open when the crawl was stopped."""
        rows = self.database.execute("SELECT * FROM batch ORDER BY number").fetchall()
        return [
            Batch(number, self._titles(first, last), bool(reads), json.loads(params))
            for number, first, last, reads, params in rows
        ]

    def next_batch(self, size: int, *, reads: bool) -> Batch:
        first, last = self.num_dispatched, self.num_dispatched + size
        with self.database.transaction():
            number = self.database.execute(
                "INSERT INTO batch (first, last, reads, onward) VALUES (?, ?, ?, '{}')",
                (first, last, reads),
            ).lastrowid
            self.database.set_meta(begun=last)
        assert number is not None
        self.num_dispatched = last
        return Batch(number, self._titles(first, last), reads)

    def record(self, batch: Batch, response: QueryResponse) -> Batch | None:
        """Store a response; returns the batch to continue with, if it is incomplete."""
        with self.database.transaction():
            if batch.reads:
                self._store_parts(response.parts)
            if response.continuation is None:
                self._finish(batch, response)
                return None
            self.database.execute(
                "UPDATE batch SET onward = ? WHERE number = ?",
                (json.dumps(response.continuation), batch.number),
            )
        return replace(batch, continuation=response.continuation)

    def _titles(self, first: int, last: int) -> dict[str, int]:
        rows = self.database.execute(
            "SELECT title, number FROM title WHERE place >= ? AND place < ?"
            " ORDER BY place",
            (first, last),
        )
        return dict(rows.fetchall())

    def _store_parts(self, parts: list[PagePart]) -> None:
        """Store parts of articles that are not complete yet."""
        position = "SELECT position FROM page WHERE page_id = ?"
        for part in parts:
            if self.database.scalar(position, part.page_id) is not None:
                continue
            self.database.execute(
                "INSERT INTO page (page_id, title, intro, views) VALUES (?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET intro = COALESCE(intro, excluded.intro),"
                " views = COALESCE(views, excluded.views)",
                (part.page_id, part.title, part.intro, part.total_views),
            )
            self.database.executemany(
                "INSERT OR IGNORE INTO title (title) VALUES (?)",
                [(title,) for title in part.links],
            )
            self.num_links += self.database.executemany(
                "INSERT OR IGNORE INTO link SELECT ?, number FROM title"
                " WHERE title = ?",
                [(part.page_id, title) for title in part.links],
            ).rowcount
        days = [day for part in parts for day in part.views]
        if days:
            first = self.database.get_meta("first_day", days[0])
            last = self.database.get_meta("last_day", days[0])
            self.database.set_meta(
                first_day=min(first, *days), last_day=max(last, *days)
            )

    def _finish(self, batch: Batch, response: QueryResponse) -> None:
        """Store the status of the titles, and resolve the queue as far as known."""
        titles = batch.titles.items()
        self.database.executemany(
            "UPDATE title SET fate = ?, page_id = ? WHERE number = ?",
            [(*response.statuses[title], number) for title, number in titles],
        )
        self.database.execute("DELETE FROM batch WHERE number = ?", (batch.number,))
        while self.num_pages < self.max_pages and self._resolve_next():
            pass
        self.database.set_meta(settled=self.num_resolved)

    def _resolve_next(self) -> bool:
        """Resolve the next title in the queue, if its status is known."""
        row = self.database.execute(
            "SELECT page_id FROM title WHERE place = ? AND fate IS NOT NULL",
            (self.num_resolved,),
        ).fetchone()
        if row is None:
            return False
        self.num_resolved += 1
        position = "UPDATE page SET position = ? WHERE page_id = ? AND position IS NULL"
        if self.database.execute(position, (self.num_pages, row[0])).rowcount:
            self.num_pages += 1
            # It appends the titles that it is the first to link, sorted by name.
            rows = self.database.execute(
                "SELECT number FROM link JOIN title ON number = target"
                " WHERE source = ? AND place IS NULL ORDER BY title",
                row,
            ).fetchall()
            self.database.executemany(
                "UPDATE title SET place = ? WHERE number = ?",
                [(self.num_queued + new, number) for new, (number,) in enumerate(rows)],
            )
            self.num_queued += len(rows)
        return True
