"""`file_lock`, `sha256_file`, `atomic_write`, `remove_folder`."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import file_digest
from pathlib import Path

from unalike.errors import UserError

# A lock between processes, let go by the system even if its holder is killed.


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Be the only process that works on `path`; others wait."""
    lock = path.with_name(f".{path.name}.lock")
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        file = lock.open("w")
    except OSError as error:
        raise UserError(f"Cannot write {lock.parent}: {error.strerror}.") from None
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def sync(path: Path) -> None:
    """Wait until the content of a file is on disk."""
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def sha256_file(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal digits."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def remove_folder(place: Path) -> None:
    """Move an outdated stored form out of the way, then remove it."""
    if place.exists():
        place.rename(place.with_name(f".{place.name}.{os.getpid()}.stale"))
    for stale in place.parent.glob(f".{place.name}.*.stale"):
        shutil.rmtree(stale, ignore_errors=True)
