"""Data folders: `$UNALIKE_DATA`, the cache, and folders of stored graphs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from unalike.errors import UserError
from unalike.system import cache_dir


def data_root(data: Path | None = None) -> Path:
    """The folder of raw files: the argument, else $UNALIKE_DATA, else the cache."""
    path = data or os.environ.get("UNALIKE_DATA")
    return (Path(path).expanduser() if path else cache_dir() / "data").absolute()


def stored_folders(root: Path, name: str) -> Iterator[Path]:
    """Folders that may contain the stored graph of a dataset: in the root or cache."""
    yield root / "stored" / name
    key = sha256(os.fsencode(root.resolve())).hexdigest()[:12]
    yield cache_dir() / "stored" / key / name


def writable_stored_folder(name: str, data: Path | None = None) -> Path:
    """The first of these folders that can be written."""
    root = data_root(data)
    for folder in stored_folders(root, name):
        if is_writable(folder.parent):
            return folder
    raise UserError(f"Neither {root} nor {cache_dir()} can be written.")


def is_writable(folder: Path) -> bool:
    """Whether files can be made in a folder, or in its nearest parent that exists.

    A folder without any write bit is read-only for the superuser too, because its
    owner does not want files in it.
    """
    while not folder.exists():
        folder = folder.parent
    return os.access(folder, os.W_OK) and bool(folder.stat().st_mode & 0o222)
