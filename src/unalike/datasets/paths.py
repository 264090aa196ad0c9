"""Where data lives: `$UNALIKE_DATA`, cache, stored folders (only file that reads the environment)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from unalike.errors import UserError
from unalike.system import cache_dir


def data_root(given: Path | None = None) -> Path:
    """The folder of raw files: the one given, else $UNALIKE_DATA, else the cache."""
    told = given or os.environ.get("UNALIKE_DATA")
    return (Path(told).expanduser() if told else cache_dir() / "data").absolute()


def stored_folders(root: Path, name: str) -> Iterator[Path]:
    """Where the stored form of a dataset may be: in the root, or in the cache."""
    yield root / "stored" / name
    key = sha256(os.fsencode(root.resolve())).hexdigest()[:12]
    yield cache_dir() / "stored" / key / name


def writable_stored_folder(name: str, data: Path | None = None) -> Path:
    """The first of these places that can be written."""
    root = data_root(data)
    for place in stored_folders(root, name):
        if is_writable(place.parent):
            return place
    raise UserError(f"Neither {root} nor {cache_dir()} can be written.")


def is_writable(folder: Path) -> bool:
    """May files be made in a folder, or in the nearest one above that exists?

    A folder without any write bit counts as read-only for everybody: the superuser
    could write there, but its owner does not want it.
    """
    while not folder.exists():
        folder = folder.parent
    return os.access(folder, os.W_OK) and bool(folder.stat().st_mode & 0o222)
