"""Database: the SQLite file of a crawl, in which each step is kept whole or not."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unalike.errors import UserError

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
        if not self.one("SELECT COUNT(*) FROM sqlite_master"):
            with self.together():
                for statement in SCHEMA.split(";"):
                    self.do(statement)

    def close(self) -> None:
        self.base.close()

    @contextmanager
    def together(self) -> Iterator[None]:
        """What the block changes is kept as a whole or not at all."""
        self.do("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self.base.in_transaction:
                self.do("ROLLBACK")
            raise
        self.do("COMMIT")

    def do(self, statement: str, *values: Any) -> sqlite3.Cursor:
        """Run one statement."""
        return self.base.execute(statement, values)

    def one(self, question: str, *values: Any) -> Any:
        """The first value of the first row, or None."""
        row = self.do(question, *values).fetchone()
        return row[0] if row else None

    def fact(self, name: str, otherwise: Any = None) -> Any:
        """What was noted under a name."""
        text = self.one("SELECT value FROM fact WHERE name = ?", name)
        return otherwise if text is None else json.loads(text)

    def note(self, **facts: Any) -> None:
        """Note facts under their names."""
        rows = [(name, json.dumps(value)) for name, value in facts.items()]
        self.base.executemany("INSERT OR REPLACE INTO fact VALUES (?, ?)", rows)


@contextmanager
def opened(path: Path) -> Iterator[Database]:
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
