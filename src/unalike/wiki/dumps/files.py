"""Find the files of a wiki dump, decompress them, and cache finished stages."""

from __future__ import annotations

import bz2
import gzip
import json
import re
import shutil
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from unalike.data.store import write_npy
from unalike.errors import UserError
from unalike.files import partial_folder

BLOCK_BYTES = 1 << 23
"""Decompressed bytes per block."""
READ_BYTES = 1 << 18
"""Compressed bytes per read."""


@dataclass(frozen=True)
class Block:
    """Decompressed bytes, and the bytes of the file that were read for them."""

    content: bytes
    bytes_read: int


class Bz2Reader:
    """A file of one or several bz2 streams, with zeros between or after them.

    `bz2.open` ends silently at a stream whose header is damaged.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.stream = file, bz2.BZ2Decompressor()

    def read(self, size: int) -> bytes:
        """At most so many decompressed bytes, none at the end of the file."""
        while True:
            compressed = b""
            if self.stream.eof:
                compressed = self.stream.unused_data.lstrip(b"\0")
                while not compressed and (block := self.file.read(READ_BYTES)):
                    compressed = block.lstrip(b"\0")
                if not compressed:
                    return b""
                self.stream = bz2.BZ2Decompressor()
            elif self.stream.needs_input:
                compressed = self.file.read(READ_BYTES)
                if not compressed:
                    raise EOFError("it ends in the middle of a stream")
            if content := self.stream.decompress(compressed, size):
                return content


OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": Bz2Reader}


def decompressed_blocks(path: Path) -> Iterator[Block]:
    """Decompress a file by its suffix; a damaged file raises a `UserError`."""
    position, opened = 0, OPENERS.get(path.suffix)
    try:
        if opened and not path.stat().st_size:
            raise EOFError("it is empty")
        with path.open("rb", buffering=READ_BYTES) as file:
            stream = opened(file) if opened else file
            while True:
                content = stream.read(BLOCK_BYTES)
                yield Block(content, file.tell() - position)
                if not content:
                    break
                position = file.tell()
    except FileNotFoundError:
        raise UserError(f"{path} is missing.") from None
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path} is damaged: {error}.") from None


SUFFIXES = ("", *OPENERS)
REQUIRED_TABLES = ("page", "redirect", "pagelinks")
TABLES = (*REQUIRED_TABLES, "linktarget")
_VIEWS = re.compile(r"pageviews-(\d{6}|\d{8})-(user|\d{6})(\.gz|\.bz2)?")
"""Views of a month or a day by users, or of an hour by all agents."""


@dataclass(frozen=True)
class DumpFiles:
    """The SQL tables and page view files of one wiki and date."""

    wiki: str
    date: str
    tables: dict[str, Path]
    views: list[Path]

    @classmethod
    def find(cls, folder: Path) -> DumpFiles:
        """Find the files of one dump in a folder; raises an error if one is missing."""
        if not folder.is_dir():
            raise UserError(f"There is no folder {folder}.")
        tables = {}
        for name in TABLES:
            paths = sorted(p for s in SUFFIXES for p in folder.glob(f"*-{name}.sql{s}"))
            if len(paths) > 1:
                both = " and ".join(path.name for path in paths[:2])
                raise UserError(f"There are two tables {name}: {both}; leave one.")
            if paths:
                tables[name] = paths[0]
            elif name in REQUIRED_TABLES:
                raise UserError(f"{folder} has no table {name} (*-{name}.sql.gz).")
        page = tables["page"]
        for path in tables.values():
            if _wiki_and_date(path) != _wiki_and_date(page):
                raise UserError(
                    f"{path.name} and {page.name} are not of the same wiki and date."
                )
        wiki, _, date = _wiki_and_date(page).rpartition("-")
        views = [path for path in folder.iterdir() if _VIEWS.fullmatch(path.name)]
        return cls(wiki, date, tables, sorted(views))

    def dates(self) -> dict[str, str | None]:
        """Return the date of the dump, and the first and last period of page views."""
        periods = [
            path.name.split(".")[0].split("-", 1)[1].removesuffix("-user")
            for path in self.views
        ]
        first, last = (periods[0], periods[-1]) if periods else (None, None)
        return {"dump": self.date, "views_from": first, "views_to": last}

    def sizes(self) -> dict[str, int]:
        paths = [*self.tables.values(), *self.views]
        return {path.name: path.stat().st_size for path in paths}


def _wiki_and_date(path: Path) -> str:
    """Return wiki and date of a file name, such as `enwiki-20240101`."""
    return path.name.rpartition(".sql")[0].rpartition("-")[0]


@dataclass(frozen=True)
class StageCache:
    """Cache on disk with one folder for each finished stage."""

    folder: Path

    @classmethod
    def open(cls, out: Path, files: DumpFiles) -> StageCache:
        """Open the cache of an earlier run, or an empty one if files have changed."""
        folder = out.with_name(f".{out.name}.dumps")
        fingerprint = json.dumps(
            {
                str(file.absolute()): [file.stat().st_size, file.stat().st_mtime_ns]
                for file in (*files.tables.values(), *files.views)
            },
            indent=1,
        )
        path = folder / "files.json"
        if not path.exists() or path.read_text("utf-8") != fingerprint:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            path.write_text(fingerprint, "utf-8")
        return cls(folder)

    def has(self, name: str) -> bool:
        return (self.folder / name).exists()

    def get_or_run(self, name: str, run: Callable[[StageOutput], None]) -> StageOutput:
        """Return the output of a stage; `run` writes it if it is not cached."""
        final = self.folder / name
        if not self.has(name):
            with partial_folder(final) as partial:
                run(StageOutput(partial))
                partial.rename(final)
            # Arrow caches freed memory, which other stages need.
            pa.default_memory_pool().release_unused()
        return StageOutput(final)


@dataclass(frozen=True)
class StageOutput:
    """Output folder of one stage."""

    folder: Path

    def save(self, **arrays: np.ndarray) -> None:
        for name, array in arrays.items():
            write_npy(self.folder / f"{name}.npy", array)

    def load(self, name: str) -> np.ndarray:
        return np.load(self.folder / f"{name}.npy")

    def memmap(self, name: str) -> Any:
        return np.load(self.folder / f"{name}.npy", mmap_mode="r")
