"""Parquet tables of a wiki with sha256 (`collection.json`)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import file_digest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from unalike.data.store import GraphWriter, atomic_graph_writer
from unalike.errors import UserError, lookup
from unalike.version import __version__

FORMAT = 1
METADATA_FILE = "collection.json"
ROWS = 1 << 16
"""Rows of a table that are looked at together."""

SCHEMAS = {
    "pages": pa.schema(
        [
            pa.field("page_id", pa.int64(), nullable=False),
            pa.field("title", pa.string(), nullable=False),
            pa.field("intro", pa.string(), nullable=False),
            pa.field("views", pa.int64()),
        ]
    ),
    "links": pa.schema(
        [
            pa.field("source", pa.int64(), nullable=False),
            pa.field("target", pa.int64(), nullable=False),
        ]
    ),
    "aliases": pa.schema(
        [
            pa.field("alias", pa.string(), nullable=False),
            pa.field("page_id", pa.int64(), nullable=False),
        ]
    ),
    "missing": pa.schema([pa.field("title", pa.string(), nullable=False)]),
}
"""What each table holds, in this order of rows.

pages: every article (namespace 0, no redirects) by ascending page id. links: distinct
pairs of page ids that are in pages, ascending by source, then target; redirects are
followed to the article they lead to, and links from an article to itself, also by way
of a redirect, are left out, as are links to what is no article of the collection.
aliases: titles of redirects to articles of the collection, over any number of steps,
ascending; a crawl knows those that are linked. missing: titles that are linked and do
not exist, ascending; a redirect that leads nowhere exists, so it is neither an alias
nor missing.
Titles have spaces, not underscores, and ascend by their UTF-8 bytes.
"""


@dataclass(frozen=True, eq=False)
class Collection:
    """An opened folder of tables, and what is written about them."""

    folder: Path
    about: dict[str, Any]
    """What collection.json says: wiki, start, dates, counts, a hash per table."""

    @classmethod
    def open(cls, folder: Path) -> Collection:
        """Open a collection: reads one small file."""
        path = folder / METADATA_FILE
        try:
            about = json.loads(path.read_text("utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            raise UserError(
                f"{folder} is no collection: it has no {METADATA_FILE}."
            ) from None
        except ValueError as error:
            raise UserError(f"{path} is damaged: {error}.") from None
        if not isinstance(about, dict) or "tables" not in about:
            raise UserError(f"{path} does not describe a collection.")
        if (found := about.get("format")) != FORMAT:
            raise UserError(
                f"{folder} has the format {found}; unalike here reads {FORMAT}."
            )
        return cls(folder, about)

    def rows(self, table: str) -> int:
        """How many rows a table has."""
        return self.about["tables"][table]["rows"]

    def batches(
        self, table: str, *columns: str, rows: int = ROWS
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a table, a stretch at a time; of all columns or of some."""
        path = self.folder / f"{table}.parquet"
        try:
            with pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 22) as file:
                yield from file.iter_batches(rows, columns=list(columns) or None)
        except (pa.ArrowException, OSError) as error:
            raise UserError(f"{path} is damaged or missing: {error}") from None

    def verify(self) -> None:
        """Compare every table with its hash; name the first that differs."""
        for name, facts in self.about["tables"].items():
            path = self.folder / f"{name}.parquet"
            try:
                found = _sha256(path)
            except OSError as error:
                raise UserError(f"{path} cannot be read: {error.strerror}.") from None
            if found != facts["sha256"]:
                raise UserError(f"{path} is damaged (sha256 differs).")


@dataclass(frozen=True)
class CollectionWriter:
    """The tables of a collection being written, a stretch of rows at a time."""

    draft: GraphWriter
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)

    @contextmanager
    def table(self, name: str) -> Iterator[pq.ParquetWriter]:
        """Write one table; the block gives it `write_batch` and `write_table`."""
        schema = lookup(SCHEMAS, name, "table")
        path = self.draft.folder / f"{name}.parquet"
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            yield writer
        with path.open("rb") as file:
            os.fsync(file.fileno())
        rows = pq.read_metadata(path).num_rows
        self.facts[name] = {"rows": rows, "sha256": _sha256(path)}

    def scratch(self, name: str) -> Path:
        """A path for a temporary file; it is gone when the collection is done."""
        return self.draft.scratch(name)

    def commit(self, about: dict[str, Any]) -> Collection:
        """Describe the tables and give the folder its name.

        `about` has the `wiki` (address of the API or name of the dump), the `start`
        title or None, and `dates`; whatever else it tells is kept.
        """
        self.draft.discard_scratch()
        counts = {name: facts["rows"] for name, facts in self.facts.items()}
        told = {"format": FORMAT, "unalike": __version__, **about, "counts": counts}
        told["tables"] = {name: self.facts[name] for name in SCHEMAS}
        with (self.draft.folder / METADATA_FILE).open("w", encoding="utf-8") as file:
            file.write(json.dumps(told, indent=1, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.draft.folder.rename(self.draft.final)
        return Collection(self.draft.final, told)


@contextmanager
def writing_collection(folder: Path) -> Iterator[CollectionWriter]:
    """Write a collection; whatever goes wrong, nothing is left behind."""
    with atomic_graph_writer(folder) as draft:
        yield CollectionWriter(draft)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
