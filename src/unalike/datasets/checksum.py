"""Checksums: the size and sha256 of every raw file that was ever checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import file_digest
from importlib.resources import files
from pathlib import Path


@dataclass(frozen=True)
class Checksum:
    """What tells one file from another."""

    size: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> Checksum:
        """The checksum of a file on disk."""
        with path.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
            return cls(file.tell(), digest)


@cache
def known_checksums() -> Mapping[str, Checksum]:
    """The checksums that ship with unalike, by the file's place under the root."""
    text = files("unalike.datasets").joinpath("checksums.txt").read_text("utf-8")
    rows = (line.split("  ", 2) for line in text.splitlines())
    return {path: Checksum(int(size), digest) for digest, size, path in rows}
