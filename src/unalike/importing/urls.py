"""Tables at URLs: in a DuckDB file, or Parquet files of a store that fsspec reads."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from unalike.errors import UserError, require
from unalike.importing.parquet import ParquetTable
from unalike.importing.sql import DUCKDB, SqlQuery
from unalike.importing.tables import Table

SUFFIXES = (".parquet", ".pq")


def open_url(url: str) -> Iterator[Table]:
    """The table of duckdb:///FILE#TABLE, or the Parquet files of a URL like s3://…"""
    if url.startswith(DUCKDB):
        file, _, name = url.partition("#")
        if not name:
            raise UserError(f"{url} names no table; write {DUCKDB}FILE#TABLE.")
        yield SqlQuery(file, f"SELECT * FROM {name}").open()
        return
    fsspec = require("fsspec", "warehouse", f"{url} is read by fsspec")
    try:
        store, path = fsspec.core.url_to_fs(url)
        files = store.glob(path) if set(path) & set("*?[") else store.find(path)
    except Exception as error:
        raise UserError(f"{url} cannot be read: {error}.") from None
    tables = sorted(file for file in files if file.lower().endswith(SUFFIXES))
    if not tables:
        raise UserError(f"{url} has no Parquet file.")
    for file in tables:
        name, size = store.unstrip_protocol(file), store.size(file)
        yield ParquetTable.of(name, size, partial(store.open, file, "rb"))
