"""Unpacking: the bytes of a dump file, a block at a time, packed or plain."""

from __future__ import annotations

import bz2
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Protocol, runtime_checkable

from unalike.errors import UserError

BLOCK = 1 << 23
"""Unpacked bytes that are looked at together; a block may be somewhat longer."""
PIECE = 1 << 18
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


UNPACKERS: dict[str, Callable[[], Unpacker]] = {
    ".gz": _gunzip,
    ".bz2": bz2.BZ2Decompressor,
}


def unpacked(path: Path) -> Iterator[Block]:
    """Unpack a file by its suffix; what is damaged ends in a `UserError`."""
    try:
        with path.open("rb") as file:
            start = UNPACKERS.get(path.suffix)
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
        if length >= BLOCK:
            yield Block(b"".join(waiting), read)
            waiting, length, read = [], 0, 0
    yield Block(b"".join(waiting), read)


def _plain(file: BufferedReader) -> Iterator[Block]:
    while piece := file.read(PIECE):
        yield Block(piece, len(piece))


def _pieces(file: BufferedReader, start: Callable[[], Unpacker]) -> Iterator[Block]:
    unpacker = start()
    while packed := file.read(PIECE):
        read = len(packed)
        while packed:
            # Files are joined from several packed ones, and some end in zeros.
            unpacker = start() if unpacker.eof else unpacker
            yield Block(unpacker.decompress(packed), read)
            read, packed = 0, unpacker.unused_data.lstrip(b"\0")
    if not unpacker.eof:
        raise EOFError("it ends too early")
