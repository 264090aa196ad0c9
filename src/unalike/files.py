"""Atomic writes, locks between processes, file hashes, removal of folders."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import file_digest
from pathlib import Path

from filelock import FileLock

from unalike.errors import UserError

UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EROFS)
"""Errors of a full or read-only disk, which are the user's to solve."""


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turn errors of a full or read-only disk into a `UserError` with the path."""
    try:
        yield
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        raise UserError(f"Cannot write {path}: {error.strerror}.") from None


@contextmanager
def atomic_write(path: Path, *, fsync: bool = False) -> Iterator[Path]:
    """Give a temporary path next to `path`, and rename its file when the block ends.

    After an error, or if the block wrote nothing, `path` is as it was before.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with write_errors(path):
            yield partial
            if fsync:
                sync(partial)
            if partial.exists():
                partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Wait until the content of a file is on disk."""
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def sha256_file(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal digits."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Let one process at a time work on `path`; a killed process frees its lock."""
    lock = path.with_name(f".{path.name}.lock")
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        process_lock = FileLock(lock)
        process_lock.acquire()
    except OSError as error:
        raise UserError(f"Cannot write {lock.parent}: {error.strerror}.") from None
    try:
        yield
    finally:
        process_lock.release()


def remove_folder(folder: Path) -> None:
    """Rename a folder, then remove it and others that killed processes renamed."""
    if folder.exists():
        folder.rename(folder.with_name(f".{folder.name}.{os.getpid()}.stale"))
    for stale in folder.parent.glob(f".{folder.name}.*.stale"):
        shutil.rmtree(stale, ignore_errors=True)
