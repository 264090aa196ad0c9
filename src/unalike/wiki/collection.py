"""Collection of a wiki: Parquet tables of pages, links, redirects, missing titles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from unalike.data.store import GraphWriter, atomic_graph_writer
from unalike.errors import UserError, lookup
from unalike.files import read_metadata, sha256_file, sync, write_metadata
from unalike.importing.parquet import parquet_errors, parquet_stream
from unalike.version import __version__

FORMAT = 1
METADATA_FILE = "collection.json"
BATCH_ROWS = 1 << 16
"""Rows per batch of a table."""
MAIN_NAMESPACE = 0
"""Namespace of articles and of redirects between them."""

ID, TEXT = pa.int64(), pa.string()


def required(**types: pa.DataType) -> list[pa.Field]:
    """Columns without nulls."""
    return [pa.field(name, kind, nullable=False) for name, kind in types.items()]


SCHEMAS = {
    "pages": pa.schema(
        [*required(page_id=ID, title=TEXT, intro=TEXT), pa.field("views", ID)]
    ),
    "links": pa.schema(required(source=ID, target=ID)),
    "aliases": pa.schema(required(alias=TEXT, page_id=ID)),
    "missing": pa.schema(required(title=TEXT)),
}
"""Columns of each table. Rows are sorted:

pages: every article (namespace 0, no redirects) by ascending page id. links: distinct
pairs of page ids that are in pages, ascending by source, then target; redirects are
followed to their article, and links from an article to itself, also over redirects, are
left out, as are links to titles that are no article of the collection.
aliases: titles of redirects to articles of the collection, over any number of steps,
ascending; a crawl knows those that are linked. missing: titles that are linked and do
not exist, ascending; a redirect without an article exists, so it is neither an alias
nor missing.
Titles have spaces, not underscores, and are sorted by their UTF-8 bytes.
"""


@dataclass(frozen=True, eq=False)
class Collection:
    """An opened folder of tables with its metadata."""

    folder: Path
    metadata: dict[str, Any]
    """Content of collection.json: wiki, start, dates, counts, a hash per table."""

    @classmethod
    def open(cls, folder: Path) -> Collection:
        """Open a collection; reads collection.json only."""
        metadata = read_metadata(
            folder / METADATA_FILE, kind="collection", content="tables", version=FORMAT
        )
        return cls(folder, metadata)

    def num_rows(self, table: str) -> int:
        return self.metadata["tables"][table]["rows"]

    def batches(
        self, table: str, *columns: str, rows: int = BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        """Read all or some columns of a table, a batch of rows at a time."""
        path = self.folder / f"{table}.parquet"
        with parquet_errors(path), parquet_stream(path) as file:
            yield from file.iter_batches(rows, columns=list(columns) or None)

    def verify(self) -> None:
        """Compare every table with its hash; raises an error if one differs."""
        for name, entry in self.metadata["tables"].items():
            path = self.folder / f"{name}.parquet"
            try:
                digest = sha256_file(path)
            except OSError as error:
                raise UserError(f"{path} cannot be read: {error.strerror}.") from None
            if digest != entry["sha256"]:
                raise UserError(f"{path} is damaged (sha256 differs).")


@dataclass(frozen=True)
class CollectionWriter:
    """Writes the tables of a collection, a batch of rows at a time."""

    writer: GraphWriter
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)

    @contextmanager
    def table(self, name: str) -> Iterator[pq.ParquetWriter]:
        """Write one table through the Parquet writer of the `with` block."""
        schema = lookup(SCHEMAS, name, "table")
        path = self.writer.folder / f"{name}.parquet"
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            yield writer
        sync(path)
        rows = pq.read_metadata(path).num_rows
        self.tables[name] = {"rows": rows, "sha256": sha256_file(path)}

    def write(self, name: str, batches: Iterable[Iterable[Any]]) -> None:
        """Write one table from the columns of each batch of rows."""
        schema = SCHEMAS[name]
        with self.table(name) as table:
            for columns in batches:
                typed = [
                    pa.array(column).cast(field.type)
                    for column, field in zip(columns, schema, strict=True)
                ]
                table.write_table(pa.Table.from_arrays(typed, schema=schema))

    def commit(self, metadata: dict[str, Any]) -> Collection:
        """Write collection.json and rename the folder to its final name."""
        self.writer.discard_scratch()
        counts = {name: entry["rows"] for name, entry in self.tables.items()}
        document = {"format": FORMAT, "unalike": __version__, **metadata}
        document["counts"] = counts
        document["tables"] = {name: self.tables[name] for name in SCHEMAS}
        write_metadata(self.writer.folder / METADATA_FILE, document)
        self.writer.folder.rename(self.writer.final)
        return Collection(self.writer.final, document)


@contextmanager
def writing_collection(folder: Path) -> Iterator[CollectionWriter]:
    """Write a collection; after an error, nothing is left on disk."""
    with atomic_graph_writer(folder) as writer:
        yield CollectionWriter(writer)
