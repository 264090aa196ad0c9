"""Export: the state of a finished crawl, written as a collection."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from unalike.wiki.answer import Fate
from unalike.wiki.collection import TABLES, Collection, collecting
from unalike.wiki.database import Database

ROWS = 1 << 16

TEXTS = {
    "pages": (
        "SELECT page_id, title, COALESCE(intro, ''), views FROM page"
        " WHERE position IS NOT NULL ORDER BY page_id"
    ),
    "aliases": (
        "SELECT title.title, page_id FROM title JOIN page USING (page_id)"
        f" WHERE fate = {Fate.ALIAS.value} AND position IS NOT NULL"
        " ORDER BY title.title"
    ),
    "missing": (
        f"SELECT title FROM title WHERE fate = {Fate.MISSING.value} ORDER BY title"
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


def export(database: Database, out: Path, about: dict[str, Any]) -> Collection:
    """Write what was crawled; the folder appears whole or not at all."""
    with collecting(out) as writer:
        for name, question in TEXTS.items():
            with writer.table(name) as table:
                for rows in _stretches(database.do(question)):
                    table.write_batch(_batch(name, zip(*rows, strict=True)))
        with writer.table("links") as table:
            for pairs in _by_source(database.do(LINKS)):
                table.write_batch(_batch("links", np.unique(pairs, axis=0).T))
        return writer.commit(about)


def _stretches(rows: sqlite3.Cursor) -> Iterator[list[tuple[Any, ...]]]:
    while stretch := rows.fetchmany(ROWS):
        yield stretch


def _batch(name: str, columns: Any) -> pa.RecordBatch:
    schema = TABLES[name]
    arrays = [
        pa.array(column, type=field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _by_source(rows: sqlite3.Cursor) -> Iterator[np.ndarray]:
    """Pairs in stretches that hold all of the pairs of their sources."""
    held = np.empty((0, 2), np.int64)
    for stretch in _stretches(rows):
        held = np.concatenate([held, np.array(stretch, np.int64)])
        whole = np.searchsorted(held[:, 0], held[-1, 0])
        if whole:
            yield held[:whole]
        held = held[whole:]
    if len(held):
        yield held
