"""Fetch a raw file: try its mirrors, unzip it, verify and record its sha256."""

from __future__ import annotations

import json
import lzma
import shutil
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from unalike.datasets.download import (
    BACKOFF_SECONDS,
    DownloadError,
    PartialFile,
    download,
)
from unalike.datasets.readers import READ_ERRORS
from unalike.datasets.remote import Checksum, RemoteFile
from unalike.errors import UserError
from unalike.files import atomic_write, file_lock
from unalike.progress import NO_PROGRESS, Progress
from unalike.system import is_writable

CHECKSUMS_FILE = "hashes.json"
"""Checksums of the files that were first seen in a data root."""
ARCHIVES_FOLDER = "downloads"
"""Archives are stored in this folder of the data root until they are extracted."""


MAX_COMPRESSION_RATIO = 100
"""Decompressed bytes of an archive member for each compressed one."""
MIN_LIMIT_BYTES = 1 << 20
"""Members up to this size may be compressed by any ratio."""
ARCHIVE_ERRORS = (*READ_ERRORS, lzma.LZMAError)
"""Exceptions of `zipfile` on damaged, encrypted or unsupported archives."""


@dataclass(frozen=True)
class Fetched:
    """A file that was downloaded or that existed, and its checksum."""

    name: str
    """Its path under the data root."""
    path: Path
    checksum: Checksum
    downloaded: bool
    known: bool
    """The checksum was known before, from unalike or from an earlier fetch."""


def fetch_file(
    file: RemoteFile,
    root: Path,
    *,
    progress: Progress = NO_PROGRESS,
    backoff: Sequence[float] = BACKOFF_SECONDS,
) -> Fetched:
    """Download a file into the data root unless it exists, and verify its checksum."""
    if path := file.find(root):
        return _verify_existing(file, root, path)
    target = root / file.path
    if not is_writable(target.parent):
        raise UserError(
            f"{file.path} is missing and cannot be fetched into {root}: "
            "the folder is read-only. Name another with --data."
        )
    with file_lock(target):
        if path := file.find(root):
            return _verify_existing(file, root, path)
        expected = file.checksum or recorded_checksums(root).get(file.path)
        get = partial(_download_to, progress=progress, backoff=backoff)
        _try_mirrors(file, root, expected, get)
        checksum = expected or Checksum.of(target)
    return Fetched(file.path, target, checksum, downloaded=True, known=bool(expected))


def remove_archives(files: Sequence[RemoteFile], root: Path) -> None:
    """Remove the archives that files were extracted from."""
    urls = {mirror.split("#")[0] for file in files for mirror in file.mirrors}
    for archive in {_archive_path(url, root) for url in urls}:
        if archive.exists():
            with file_lock(archive):
                archive.unlink(missing_ok=True)


def recorded_checksums(root: Path) -> dict[str, Checksum]:
    """The checksums that were recorded in a data root, by path."""
    path = root / CHECKSUMS_FILE
    try:
        document = json.loads(path.read_text("utf-8"))
        return {name: Checksum(**fields) for name, fields in document.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, AttributeError):
        raise UserError(f"{path} is damaged; remove it to start anew.") from None


def record_checksums(root: Path, files: Iterable[Fetched]) -> None:
    """Record the new checksums of files whose reader has accepted them."""
    new = {file.name: file.checksum for file in files if not file.known}
    if not new or not is_writable(root):
        return
    path = root / CHECKSUMS_FILE
    with file_lock(path):
        checksums = {**recorded_checksums(root), **new}
        document = {key: asdict(value) for key, value in sorted(checksums.items())}
        with atomic_write(path) as partial:
            partial.write_text(json.dumps(document, indent=1) + "\n", "utf-8")


def _verify_existing(file: RemoteFile, root: Path, path: Path) -> Fetched:
    """Verify a file; at another than its main path it may be another copy."""
    name = str(path.relative_to(root))
    shipped = file.checksum if name == file.path else None
    expected = shipped or recorded_checksums(root).get(name)
    checksum = Checksum.of(path)
    if expected is not None and checksum != expected:
        raise UserError(
            f"{path} is not the file it should be (sha256 {checksum.sha256[:16]}… "
            f"instead of {expected.sha256[:16]}…); remove it to fetch it again."
        )
    return Fetched(name, path, checksum, downloaded=False, known=bool(expected))


def _archive_path(url: str, root: Path) -> Path:
    return root / ARCHIVES_FOLDER / urlsplit(url).path.rpartition("/")[2]


def _try_mirrors(
    file: RemoteFile,
    root: Path,
    expected: Checksum | None,
    get: Callable[[str, Path, Checksum | None], None],
) -> None:
    """Get the file from the first mirror that has the right one, https first."""
    reasons, target = [], root / file.path
    for mirror in sorted(file.mirrors, key=lambda url: not url.startswith("https://")):
        url, _, member = mirror.partition("#")
        try:
            if member:
                archive = _archive_path(url, root)
                with file_lock(archive):
                    if not archive.exists():
                        get(url, archive, None)
                    _extract_member(archive, member, target, expected)
            else:
                get(url, target, expected)
            return
        except DownloadError as error:
            reasons.append(f"{urlsplit(url).hostname}: {error}")
    details = f" ({'; '.join(reasons)})" if reasons else ""
    hint = file.manual_download_hint(root)
    raise UserError(f"Cannot fetch {file.path}{details}. {hint}")


def _download_to(
    url: str,
    target: Path,
    expected: Checksum | None,
    *,
    progress: Progress,
    backoff: Sequence[float],
) -> None:
    """Download one file, and rename it to its target if its checksum is right."""
    part, size = PartialFile(target), expected.size if expected else None
    resumed = part.size > 0
    try:
        download(url, part, size=size, progress=progress, backoff=backoff)
    except OSError as error:
        raise UserError(f"Cannot write {target}: {error.strerror}.") from None
    if expected in (None, Checksum.of(part.path)):
        part.commit()
        return
    part.discard()
    if not resumed:
        raise DownloadError("it gives another file (sha256 differs)")
    # The bytes of an earlier attempt may be wrong: download all of them again.
    _download_to(url, target, expected, progress=progress, backoff=backoff)


def _extract_member(
    archive: Path, member: str, target: Path, expected: Checksum | None
) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with (
            atomic_write(target, fsync=True) as extracted,
            zipfile.ZipFile(archive) as zipped,
            zipped.open(member) as source,
        ):
            _check_size(zipped.getinfo(member), expected)
            with extracted.open("wb") as copy:
                shutil.copyfileobj(source, copy)
            if expected not in (None, Checksum.of(extracted)):
                raise DownloadError(
                    f"its archive has another {member} (sha256 differs)"
                )
    except ARCHIVE_ERRORS as error:
        archive.unlink()
        raise DownloadError(
            f"its archive is damaged or lacks {member} ({error})"
        ) from None


def _check_size(member: zipfile.ZipInfo, expected: Checksum | None) -> None:
    """Refuse a member of another size, or one that is packed too tightly."""
    limit = MAX_COMPRESSION_RATIO * member.compress_size
    if member.file_size != (expected.size if expected else member.file_size):
        raise zipfile.BadZipFile(f"{member.file_size} bytes")
    if member.file_size > max(limit, MIN_LIMIT_BYTES):
        raise zipfile.BadZipFile(
            f"{member.file_size} bytes out of {member.compress_size}"
        )
