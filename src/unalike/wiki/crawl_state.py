"""SQLite state of a crawl: queue, titles, pages, links, batches under way."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from unalike.errors import UserError
from unalike.wiki.responses import PagePart, QueryResponse

# Database: the SQLite file of a crawl, in which each step is kept whole or not.


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

A title has a place in the queue once an article with a position links it. An article
has a position once the titles of all earlier places are settled. Both follow from the
wiki alone, whatever the order of answers. A link goes from a page id to the number of
a title. A batch is a stretch of places being asked for, and how its next request goes
on.
"""


class Database:
    """An open file, with facts under names beside the tables."""

    def __init__(self, path: Path) -> None:
        self.base = sqlite3.connect(path, isolation_level=None)
        self.base.execute("PRAGMA journal_mode = WAL")
        self.base.execute("PRAGMA synchronous = NORMAL")
        if not self.scalar("SELECT COUNT(*) FROM sqlite_master"):
            with self.transaction():
                for statement in SCHEMA.split(";"):
                    self.execute(statement)

    def close(self) -> None:
        self.base.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """What the block changes is kept as a whole or not at all."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self.base.in_transaction:
                self.execute("ROLLBACK")
            raise
        self.execute("COMMIT")

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        """Run one statement."""
        return self.base.execute(statement, values)

    def scalar(self, question: str, *values: Any) -> Any:
        """The first value of the first row, or None."""
        row = self.execute(question, *values).fetchone()
        return row[0] if row else None

    def get_meta(self, name: str, otherwise: Any = None) -> Any:
        """What was noted under a name."""
        text = self.scalar("SELECT value FROM fact WHERE name = ?", name)
        return otherwise if text is None else json.loads(text)

    def set_meta(self, **facts: Any) -> None:
        """Note facts under their names."""
        rows = [(name, json.dumps(value)) for name, value in facts.items()]
        self.base.executemany("INSERT OR REPLACE INTO fact VALUES (?, ?)", rows)


@contextmanager
def open_database(path: Path) -> Iterator[Database]:
    """A database for the time of a block; its failures name the file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        database = Database(path)
        try:
            yield database
        finally:
            database.close()
    except sqlite3.Error as error:
        raise UserError(f"{path}, the state of the crawl: {error}.") from None


# State: how far a crawl is, changed together with what it describes.


@dataclass(frozen=True)
class Batch:
    """Titles that are asked for together."""

    number: int
    titles: dict[str, int]
    """The number of each title."""
    reads: bool
    """Are the articles read, or is only asked what the titles are?"""
    onward: dict[str, str] = field(default_factory=dict)
    """What the next request adds, so that the answer goes on."""


class CrawlState:
    """The queue, the articles and the links of a crawl for `wanted` articles."""

    def __init__(self, database: Database, wanted: int) -> None:
        self.database = database
        self.max_pages = wanted
        self.num_dispatched: int = database.get_meta("begun", 0)
        """Places that were taken from the queue."""
        self.num_resolved: int = database.get_meta("settled", 0)
        """Places whose titles, and those of all places before, are known."""
        self.num_pages: int = database.scalar("SELECT COUNT(position) FROM page")
        self.num_places: int = database.scalar("SELECT COUNT(place) FROM title")
        self.num_links: int = database.scalar("SELECT COUNT(*) FROM link")

    @property
    def queue(self) -> int:
        """Titles that nobody asked for yet."""
        return self.num_places - self.num_dispatched

    @property
    def remaining(self) -> int:
        """Titles that can be read without reading an article too many."""
        return (
            self.max_pages - self.num_pages - (self.num_dispatched - self.num_resolved)
        )

    def unfinished(self) -> list[Batch]:
        """The batches that were under way when the crawl was last ended."""
        rows = self.database.execute("SELECT * FROM batch ORDER BY number").fetchall()
        return [
            Batch(number, self._titles(first, last), bool(reads), json.loads(onward))
            for number, first, last, reads, onward in rows
        ]

    def begin(self, size: int, *, reads: bool) -> Batch:
        """Take the next titles of the queue."""
        first, last = self.num_dispatched, self.num_dispatched + size
        with self.database.transaction():
            number = self.database.execute(
                "INSERT INTO batch (first, last, reads, onward) VALUES (?, ?, ?, '{}')",
                *(first, last, reads),
            ).lastrowid
            self.database.set_meta(begun=last)
        assert number is not None
        self.num_dispatched = last
        return Batch(number, self._titles(first, last), reads)

    def record(self, batch: Batch, answer: QueryResponse) -> Batch | None:
        """Keep an answer; gives the rest of the batch, if there is any."""
        with self.database.transaction():
            if batch.reads:
                self._store_parts(answer.parts)
            if answer.continuation is None:
                self._finish(batch, answer)
                return None
            self.database.execute(
                "UPDATE batch SET onward = ? WHERE number = ?",
                *(json.dumps(answer.continuation), batch.number),
            )
        return replace(batch, onward=answer.continuation)

    def _titles(self, first: int, last: int) -> dict[str, int]:
        rows = self.database.execute(
            "SELECT title, number FROM title WHERE place >= ? AND place < ?"
            " ORDER BY place",
            *(first, last),
        )
        return dict(rows.fetchall())

    def _store_parts(self, parts: list[PagePart]) -> None:
        """Write parts of articles, unless a whole one is there already."""
        for part in parts:
            position = "SELECT position FROM page WHERE page_id = ?"
            if self.database.scalar(position, part.page_id) is not None:
                continue
            self.database.execute(
                "INSERT INTO page (page_id, title, intro, views) VALUES (?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET intro = COALESCE(intro, excluded.intro),"
                " views = COALESCE(views, excluded.views)",
                *(part.page_id, part.title, part.intro, part.total_views),
            )
            self._link(part)
        days = [day for part in parts for day in part.views]
        if days:
            first = self.database.get_meta("first_day", days[0])
            last = self.database.get_meta("last_day", days[0])
            self.database.set_meta(
                first_day=min(first, *days), last_day=max(last, *days)
            )

    def _link(self, part: PagePart) -> None:
        base = self.database.base
        base.executemany(
            "INSERT OR IGNORE INTO title (title) VALUES (?)",
            [(title,) for title in part.links],
        )
        self.num_links += base.executemany(
            "INSERT OR IGNORE INTO link SELECT ?, number FROM title WHERE title = ?",
            [(part.page_id, title) for title in part.links],
        ).rowcount

    def _finish(self, batch: Batch, answer: QueryResponse) -> None:
        """Note what the titles are, and go on with the order as far as it is known."""
        self.database.base.executemany(
            "UPDATE title SET fate = ?, page_id = ? WHERE number = ?",
            [(*answer.fates[title], number) for title, number in batch.titles.items()],
        )
        self.database.execute("DELETE FROM batch WHERE number = ?", batch.number)
        while self.num_pages < self.max_pages and self._resolve_next():
            pass
        self.database.set_meta(settled=self.num_resolved)

    def _resolve_next(self) -> bool:
        """Settle the next place, if its title is known."""
        row = self.database.execute(
            "SELECT page_id FROM title WHERE place = ? AND fate IS NOT NULL",
            self.num_resolved,
        ).fetchone()
        if row is None:
            return False
        self.num_resolved += 1
        position = "UPDATE page SET position = ? WHERE page_id = ? AND position IS NULL"
        if self.database.execute(position, self.num_pages, row[0]).rowcount:
            self.num_pages += 1
            self._enqueue_links(row[0])
        return True

    def _enqueue_links(self, page_id: int) -> None:
        """Give places to the titles that an article is the first to link, by name."""
        rows = self.database.execute(
            "SELECT number FROM link JOIN title ON number = target"
            " WHERE source = ? AND place IS NULL ORDER BY title",
            page_id,
        ).fetchall()
        self.database.base.executemany(
            "UPDATE title SET place = ? WHERE number = ?",
            [(self.num_places + new, number) for new, (number,) in enumerate(rows)],
        )
        self.num_places += len(rows)
