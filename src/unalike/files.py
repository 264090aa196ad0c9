"""Atomic writes, metadata files, hashes, locks between processes, folder removal."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import file_digest, sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Any

from filelock import FileLock

from unalike.errors import UserError
from unalike.system import is_process_alive

UNWRITABLE = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EACCES,
    errno.EROFS,
    errno.ENOTDIR,
    errno.ENOENT,
    errno.EPERM,
    errno.EISDIR,
    errno.ENAMETOOLONG,
    errno.EEXIST,
    errno.ENOTEMPTY,
    errno.ELOOP,
)
"""Errors of a full or read-only disk or of a wrong path, which users can solve."""
ZEROS_AT_ONCE = 1 << 20
"""Bytes per write where the system cannot allocate blocks."""


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turn errors that users can solve into a `UserError` with the path."""
    try:
        yield
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        raise UserError(f"Cannot write {path}: {error.strerror}.") from None


@contextmanager
def atomic_write(path: Path, *, fsync: bool = False) -> Iterator[Path]:
    """Give a temporary path next to `path`, and rename its file when the block ends.

    After an error, or if the block wrote nothing, `path` is as it was before. A link
    stays a link to the new file.
    """
    with write_errors(path):
        target = replaceable(path)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with write_errors(path):
            yield partial
            if fsync:
                sync(partial)
            if partial.exists():
                partial.replace(target)
    finally:
        with suppress(OSError):
            partial.unlink()


def replaceable(path: Path) -> Path:
    """What a path links to, or raise if it is neither a file nor a folder."""
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise UserError(f"Cannot write {path}: the link leads to itself.")
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise UserError(f"Cannot write {path}: it is a device, a pipe or a socket.")
    return target


def check_writable(path: Path) -> None:
    """Raise if a path cannot be written; folders that do not exist are made later.

    A file is made for a moment, because permissions do not tell read-only mounts.
    """
    with write_errors(path):
        parent = replaceable(path).parent
        while not parent.exists() and parent != parent.parent:
            parent = parent.parent
        with NamedTemporaryFile(dir=parent, prefix=".unalike."):
            pass


@contextmanager
def partial_folder(path: Path) -> Iterator[Path]:
    """Give a hidden folder next to `path`; it is removed unless the block renames it.

    Hidden folders of killed processes that wrote the same path are removed first.
    """
    for stale in path.parent.glob(f".{path.name}.*.partial"):
        pid = stale.name.split(".")[-2]
        if not pid.isdecimal() or not is_process_alive(int(pid)):
            shutil.rmtree(stale, ignore_errors=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    missing = [parent for parent in partial.parents if not parent.exists()]
    try:
        with write_errors(path):
            partial.mkdir(parents=True)
            yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        with suppress(OSError):
            for parent in missing:
                parent.rmdir()


def read_metadata(path: Path, *, kind: str, content: str, version: int) -> Any:
    """Read the JSON file that describes a folder; it must have the key `content`."""
    try:
        metadata = json.loads(path.read_text("utf-8"))
    except RecursionError:
        raise UserError(f"{path} is damaged: it is nested too deeply.") from None
    except PermissionError:
        raise UserError(f"{path} may not be read: permission denied.") from None
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(
            f"{path.parent} is not a {kind}: it has no {path.name}."
        ) from None
    except ValueError as error:
        raise UserError(f"{path} is damaged: {error}.") from None
    if not isinstance(metadata, dict) or content not in metadata:
        raise UserError(f"{path} does not describe a {kind}.")
    if (found := metadata.get("format")) != version:
        raise UserError(
            f"{path.parent} has the format {found}; this unalike reads {version}."
        )
    return metadata


def write_metadata(path: Path, metadata: dict[str, Any]) -> None:
    """Write the JSON file that describes a folder."""
    text = json.dumps(metadata, indent=1, ensure_ascii=False, allow_nan=False)
    path.write_text(f"{text}\n", "utf-8")
    sync(path)


def read_json_object(path: Path) -> dict[str, Any]:
    """The JSON object of a file; empty without the file, or if it is damaged."""
    with suppress(OSError, ValueError, RecursionError):
        document = json.loads(path.read_text("utf-8"))
        if isinstance(document, dict):
            return document
    return {}


def write_cache(path: Path, text: str) -> None:
    """Write a file of the cache; where that is impossible, nothing is stored."""
    with suppress(OSError, UserError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as partial:
            partial.write_text(text, "utf-8")


def sync(path: Path) -> None:
    """Wait until the content of a file is on disk."""
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def allocate(file: IO[bytes], size: int) -> None:
    """Append zeros whose disk blocks are reserved.

    A memory map of a file without blocks ends in SIGBUS when the disk is full.
    """
    start = file.tell()
    if hasattr(os, "posix_fallocate"):
        file.flush()
        os.posix_fallocate(file.fileno(), start, size)
    else:  # macOS
        for first in range(0, size, ZEROS_AT_ONCE):
            file.write(bytes(min(ZEROS_AT_ONCE, size - first)))


def sha256_file(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal digits."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def json_hash(document: dict[str, Any], length: int = 32) -> str:
    """Hexadecimal digits of the SHA-256 of a JSON document with sorted keys.

    With 32 digits, a collision among 10^12 hashes has probability 10^-15.
    """
    text = json.dumps(document, sort_keys=True)
    return sha256(text.encode()).hexdigest()[:length]


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


MANIFEST = "written-files.json"
"""File that lists what a command wrote into a folder, so that it may replace it."""


def write_manifest(folder: Path, names: Iterable[str]) -> None:
    """List the files and folders that are written into a folder."""
    with atomic_write(folder / MANIFEST) as partial:
        write_metadata(partial, {"files": sorted(names)})


def read_manifest(folder: Path) -> set[str]:
    """The names in the manifest of a folder; none without a manifest."""
    names = read_json_object(folder / MANIFEST).get("files")
    return {MANIFEST, *map(str, names)} if isinstance(names, list) else set()
