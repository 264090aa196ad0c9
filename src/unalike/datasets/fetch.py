"""Fetch a raw file: try its mirrors, unzip it, verify and record its sha256."""

from __future__ import annotations

import json
import lzma
import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from unalike.datasets.download import (
    BACKOFF_SECONDS,
    DownloadError,
    PartialFile,
    download,
)
from unalike.datasets.remote import Checksum, RemoteFile
from unalike.errors import UserError
from unalike.files import atomic_write, file_lock, write_errors
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
ARCHIVE_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    KeyError,
    OSError,
    RuntimeError,
    ValueError,
)
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
    """Download a file into the data root unless it exists, and verify its checksum.

    A new checksum is not recorded: `record_checksums` does that once the file is read.
    """
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
        Mirrors(file, root, expected, progress, backoff).download()
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
    """Verify a file that exists.

    The shipped checksum is used for the main path only; files at other paths may be
    other copies.
    """
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


def _is_plain_http(url: str) -> bool:
    return not url.startswith("https://")


def _archive_path(url: str, root: Path) -> Path:
    return root / ARCHIVES_FOLDER / urlsplit(url).path.rpartition("/")[2]


@dataclass(frozen=True)
class Mirrors:
    """Downloads a file from the first of its mirrors that gives the right one."""

    file: RemoteFile
    root: Path
    expected: Checksum | None
    progress: Progress
    backoff: Sequence[float]

    def download(self) -> None:
        """Try the mirrors in order, those over https first."""
        reasons, target = [], self.root / self.file.path
        for mirror in sorted(self.file.mirrors, key=_is_plain_http):
            url, _, member = mirror.partition("#")
            try:
                if member:
                    archive = _archive_path(url, self.root)
                    with file_lock(archive):
                        if not archive.exists():
                            self._download_to(url, archive, None)
                        _extract_member(archive, member, target, self.expected)
                else:
                    self._download_to(url, target, self.expected)
                return
            except DownloadError as error:
                reasons.append(f"{urlsplit(url).hostname}: {error}")
        details = f" ({'; '.join(reasons)})" if reasons else ""
        hint = self.file.manual_download_hint(self.root)
        raise UserError(f"Cannot fetch {self.file.path}{details}. {hint}")

    def _download_to(self, url: str, target: Path, expected: Checksum | None) -> None:
        """Download one file, and rename it to its target if its checksum is right."""
        part = PartialFile(target)
        resumed = part.size > 0
        try:
            download(
                url,
                part,
                size=expected.size if expected else None,
                checked=expected is not None,
                progress=self.progress,
                backoff=self.backoff,
            )
        except OSError as error:
            raise UserError(f"Cannot write {target}: {error.strerror}.") from None
        if _verify_and_move(part, expected):
            return
        if not resumed:
            raise DownloadError("it gives another file (sha256 differs)")
        # The bytes of an earlier attempt may be wrong: download all of them again.
        self._download_to(url, target, expected)


def _extract_member(
    archive: Path, member: str, target: Path, expected: Checksum | None
) -> None:
    part = PartialFile(target)
    part.start(str(archive), "")
    try:
        with (
            write_errors(target),
            zipfile.ZipFile(archive) as zipped,
            zipped.open(member) as source,
            part.path.open("wb") as copy,
        ):
            _check_size(zipped.getinfo(member), expected)
            shutil.copyfileobj(source, copy)
    except ARCHIVE_ERRORS as error:
        part.discard()
        archive.unlink()
        raise DownloadError(
            f"its archive is damaged or lacks {member} ({error})"
        ) from None
    if not _verify_and_move(part, expected):
        raise DownloadError(f"its archive has another {member} (sha256 differs)")


def _check_size(member: zipfile.ZipInfo, expected: Checksum | None) -> None:
    """Refuse a member of another size, or one that is packed too tightly."""
    limit = MAX_COMPRESSION_RATIO * member.compress_size
    if member.file_size != (expected.size if expected else member.file_size):
        raise zipfile.BadZipFile(f"{member.file_size} bytes")
    if member.file_size > max(limit, MIN_LIMIT_BYTES):
        raise zipfile.BadZipFile(
            f"{member.file_size} bytes out of {member.compress_size}"
        )


def _verify_and_move(part: PartialFile, expected: Checksum | None) -> bool:
    """Commit a partial file if its checksum is right, else discard it."""
    if expected and Checksum.of(part.path) != expected:
        part.discard()
        return False
    part.commit()
    return True
