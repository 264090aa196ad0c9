"""The data root: where raw files lie, and where their stored forms go."""

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from unalike.cache import cache_folder
from unalike.errors import UserError


def data_root(given: Path | None = None) -> Path:
    """The folder of raw files: the one given, else $UNALIKE_DATA, else the cache."""
    told = given or os.environ.get("UNALIKE_DATA")
    return (Path(told).expanduser() if told else cache_folder() / "data").absolute()


def stored_places(root: Path, name: str) -> Iterator[Path]:
    """Where the stored form of a dataset may be: in the root, or in the cache."""
    yield root / "stored" / name
    key = sha256(os.fsencode(root.resolve())).hexdigest()[:12]
    yield cache_folder() / "stored" / key / name


def stored_folder(name: str, data: Path | None = None) -> Path:
    """The first of these places that can be written."""
    root = data_root(data)
    for place in stored_places(root, name):
        if is_writable(place.parent):
            return place
    raise UserError(f"Neither {root} nor {cache_folder()} can be written.")


def is_writable(folder: Path) -> bool:
    """May files be made in a folder, or in the nearest one above that exists?

    A folder without any write bit counts as read-only for everybody: the superuser
    could write there, but its owner does not want it.
    """
    while not folder.exists():
        folder = folder.parent
    return os.access(folder, os.W_OK) and bool(folder.stat().st_mode & 0o222)
