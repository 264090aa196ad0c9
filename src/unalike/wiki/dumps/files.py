"""Find dump files, decompress gzip/bz2 in blocks, cache of finished stages."""

from __future__ import annotations

import bz2
import json
import re
import shutil
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from unalike.errors import UserError

# Unpacking: the bytes of a dump file, a block at a time, packed or plain.


BLOCK_BYTES = 1 << 23
"""Unpacked bytes that are looked at together; a block may be somewhat longer."""
READ_BYTES = 1 << 18
"""Packed bytes that are read at once."""


@dataclass(frozen=True)
class Block:
    """Unpacked bytes, and how many of the file's own they took."""

    content: bytes
    read: int


@runtime_checkable
class Unpacker(Protocol):
    """What zlib and bz2 have in common."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, packed: bytes, /) -> bytes: ...


def _gunzip() -> Unpacker:
    return zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)


DECOMPRESSORS: dict[str, Callable[[], Unpacker]] = {
    ".gz": _gunzip,
    ".bz2": bz2.BZ2Decompressor,
}


def decompressed_blocks(path: Path) -> Iterator[Block]:
    """Unpack a file by its suffix; what is damaged ends in a `UserError`."""
    try:
        with path.open("rb") as file:
            start = DECOMPRESSORS.get(path.suffix)
            yield from _blocks(_pieces(file, start) if start else _plain(file))
    except FileNotFoundError:
        raise UserError(f"{path} is missing.") from None
    except (OSError, EOFError, zlib.error) as damage:
        raise UserError(f"{path} is damaged: {damage}.") from None


def _blocks(pieces: Iterator[Block]) -> Iterator[Block]:
    waiting: list[bytes] = []
    length = read = 0
    for piece in pieces:
        waiting.append(piece.content)
        length += len(piece.content)
        read += piece.read
        if length >= BLOCK_BYTES:
            yield Block(b"".join(waiting), read)
            waiting, length, read = [], 0, 0
    yield Block(b"".join(waiting), read)


def _plain(file: BufferedReader) -> Iterator[Block]:
    while piece := file.read(READ_BYTES):
        yield Block(piece, len(piece))


def _pieces(file: BufferedReader, start: Callable[[], Unpacker]) -> Iterator[Block]:
    unpacker = start()
    while packed := file.read(READ_BYTES):
        read = len(packed)
        while packed:
            # Files are joined from several packed ones, and some end in zeros.
            unpacker = start() if unpacker.eof else unpacker
            yield Block(unpacker.decompress(packed), read)
            read, packed = 0, unpacker.unused_data.lstrip(b"\0")
    if not unpacker.eof:
        raise EOFError("it ends too early")


# DumpFiles: the files of one wiki's dump in a folder, found by their names.


SUFFIXES = ("", *DECOMPRESSORS)
NEEDED = ("page", "redirect", "pagelinks")
TABLES = (*NEEDED, "linktarget")
_VIEWS = re.compile(r"pageviews-(\d{6}|\d{8})-(user|\d{6})(\.gz|\.bz2)?")
"""Views of a month or a day by people, or of an hour by everybody."""


@dataclass(frozen=True)
class DumpFiles:
    """The tables by their names, and the files of views."""

    wiki: str
    date: str
    tables: dict[str, Path]
    views: list[Path]

    @classmethod
    def find(cls, folder: Path) -> DumpFiles:
        """Look through a folder; complain of what is missing or does not match."""
        if not folder.is_dir():
            raise UserError(f"There is no folder {folder}.")
        found = {name: _tables(folder, name) for name in TABLES}
        for name in NEEDED:
            if not found[name]:
                raise UserError(f"{folder} has no table {name} (*-{name}.sql.gz).")
        tables = {name: paths[0] for name, paths in found.items() if paths}
        wiki, _, date = _wiki_and_date(tables["page"]).rpartition("-")
        views = [path for path in folder.iterdir() if _VIEWS.fullmatch(path.name)]
        files = cls(wiki, date, tables, sorted(views))
        files._check(found)
        return files

    def dates(self) -> dict[str, str | None]:
        """The date of the dump, and the first and last month, day or hour of views."""
        told = [path.name.split(".")[0].split("-", 1)[1] for path in self.views]
        days = [one.removesuffix("-user") for one in told]
        first, last = (days[0], days[-1]) if days else (None, None)
        return {"dump": self.date, "views_from": first, "views_to": last}

    def sizes(self) -> dict[str, int]:
        """The size of each file in bytes."""
        paths = [*self.tables.values(), *self.views]
        return {path.name: path.stat().st_size for path in paths}

    def _check(self, found: dict[str, list[Path]]) -> None:
        for name, paths in found.items():
            if len(paths) > 1:
                both = " and ".join(path.name for path in paths[:2])
                raise UserError(f"There are two tables {name}: {both}; leave one.")
        page = self.tables["page"]
        for path in self.tables.values():
            if _wiki_and_date(path) != _wiki_and_date(page):
                raise UserError(
                    f"{path.name} and {page.name} are not of the same wiki and date."
                )


def _tables(folder: Path, name: str) -> list[Path]:
    found = (folder.glob(f"*-{name}.sql{suffix}") for suffix in SUFFIXES)
    return sorted(path for paths in found for path in paths)


def _wiki_and_date(path: Path) -> str:
    """The wiki and the date: `enwiki-20240101`."""
    return path.name.rpartition(".sql")[0].rpartition("-")[0]


# Work: stages whose results are kept on disk, so that no finished one is repeated.


@dataclass(frozen=True)
class StageCache:
    """A folder with one folder for each finished stage."""

    folder: Path

    @classmethod
    def open(cls, out: Path, files: DumpFiles) -> StageCache:
        """The work of an earlier try, if it was on the very same files."""
        folder = out.with_name(f".{out.name}.dumps")
        paths = [*files.tables.values(), *files.views]
        told = json.dumps(
            {
                str(path.absolute()): [path.stat().st_size, path.stat().st_mtime_ns]
                for path in paths
            },
            indent=1,
        )
        note = folder / "files.json"
        if not note.exists() or note.read_text("utf-8") != told:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            note.write_text(told, "utf-8")
        return cls(folder)

    def has(self, name: str) -> bool:
        """Is a stage finished?"""
        return (self.folder / name).exists()

    def get_or_run(self, name: str, fill: Callable[[StageOutput], None]) -> StageOutput:
        """The results of a stage; `fill` makes them where they are not there yet."""
        final = self.folder / name
        if not self.has(name):
            begun = self.folder / f"{name}.begun"
            shutil.rmtree(begun, ignore_errors=True)
            try:
                begun.mkdir()
                fill(StageOutput(begun))
                begun.rename(final)
                # Arrow keeps what it was given for a next time; other stages need it.
                pa.default_memory_pool().release_unused()
            except OSError as error:
                told = error.strerror or error
                raise UserError(f"Cannot write {self.folder}: {told}.") from None
        return StageOutput(final)

    def discard(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.folder)


@dataclass(frozen=True)
class StageOutput:
    """The folder of one stage's results."""

    folder: Path

    def path(self, name: str) -> Path:
        return self.folder / name

    def save(self, **arrays: np.ndarray) -> None:
        """Write arrays by their names."""
        for name, array in arrays.items():
            np.save(self.folder / f"{name}.npy", array)

    def load(self, name: str) -> np.ndarray:
        """Read an array."""
        return np.load(self.folder / f"{name}.npy")

    def memmap(self, name: str) -> Any:
        """An array that stays on disk."""
        return np.load(self.folder / f"{name}.npy", mmap_mode="r")

    def discard(self) -> None:
        """Remove the results."""
        shutil.rmtree(self.folder)
