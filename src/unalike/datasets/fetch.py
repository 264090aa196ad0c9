"""Get one file: try mirrors, unzip, verify sha256, record new checksums (`hashes.json`)."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from unalike.datasets.download import (
    BACKOFF_SECONDS,
    DownloadError,
    PartialFile,
    download,
)
from unalike.datasets.paths import is_writable
from unalike.datasets.remote import Checksum, RemoteFile
from unalike.errors import UserError
from unalike.files import file_lock
from unalike.progress import NO_PROGRESS, Progress

# hashes.json: the first checksums a data root saw, to hold later files against.


FILE = "hashes.json"


def recorded_checksums(root: Path) -> dict[str, Checksum]:
    """The checksums that were noted in a data root, by path."""
    path = root / FILE
    try:
        told = json.loads(path.read_text("utf-8"))
        return {name: Checksum(**facts) for name, facts in told.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, AttributeError):
        raise UserError(f"{path} is damaged; remove it to start anew.") from None


def record_checksum(root: Path, name: str, checksum: Checksum) -> None:
    """Note the checksum of a file, beside those of other files."""
    path = root / FILE
    with file_lock(path):
        known = {**recorded_checksums(root), name: checksum}
        text = {key: asdict(value) for key, value in sorted(known.items())}
        fresh = path.with_name(f".{FILE}.{os.getpid()}")
        fresh.write_text(json.dumps(text, indent=1) + "\n", "utf-8")
        fresh.replace(path)


# Fetch: one raw file brought to its place unless it is there, checked either way.


DOWNLOADS = "downloads"
"""Where archives lie while files are taken out of them."""


@dataclass(frozen=True)
class Fetched:
    """What became of one file."""

    path: str
    place: Path
    checksum: Checksum
    downloaded: bool
    known: bool
    """The checksum was known before, from unalike or from an earlier fetch."""


def fetch_file(
    file: RemoteFile,
    root: Path,
    *,
    progress: Progress = NO_PROGRESS,
    waits: Sequence[float] = BACKOFF_SECONDS,
) -> Fetched:
    """Bring one file to its place, unless it is there; check it either way."""
    if place := file.find(root):
        return _verify_existing(file, root, place)
    target = root / file.path
    if not is_writable(target.parent):
        raise UserError(
            f"{file.path} is missing and cannot be fetched into {root}: "
            "the folder is read-only. Name another with --data."
        )
    with file_lock(target):
        if place := file.find(root):
            return _verify_existing(file, root, place)
        return _download_missing(file, root, progress, waits)


def _download_missing(
    file: RemoteFile, root: Path, progress: Progress, waits: Sequence[float]
) -> Fetched:
    """Download a file that is not there."""
    expected = file.checksum or recorded_checksums(root).get(file.path)
    _from_mirrors(file, root, expected, progress, waits)
    place = root / file.path
    found = expected or Checksum.of(place)
    if expected is None:
        record_checksum(root, file.path, found)
    return Fetched(file.path, place, found, downloaded=True, known=bool(expected))


def _verify_existing(file: RemoteFile, root: Path, place: Path) -> Fetched:
    """Check a file that is there already; in another place it may be another copy."""
    path = str(place.relative_to(root))
    shipped = file.checksum if path == file.path else None
    expected = shipped or recorded_checksums(root).get(path)
    found = Checksum.of(place)
    if expected is None:
        if is_writable(root):
            record_checksum(root, path, found)
    elif found != expected:
        raise UserError(
            f"{place} is not the file it should be (sha256 {found.sha256[:16]}… "
            f"instead of {expected.sha256[:16]}…); remove it to fetch it again."
        )
    return Fetched(path, place, found, downloaded=False, known=bool(expected))


def remove_archives(files: Sequence[RemoteFile], root: Path) -> None:
    """Remove the archives that files were taken out of."""
    addresses = {mirror.split("#")[0] for file in files for mirror in file.mirrors}
    for archive in {_archive(address, root) for address in addresses}:
        if archive.exists():
            with file_lock(archive):
                archive.unlink(missing_ok=True)


def _archive(address: str, root: Path) -> Path:
    return root / DOWNLOADS / urlsplit(address).path.rpartition("/")[2]


def _from_mirrors(
    file: RemoteFile,
    root: Path,
    expected: Checksum | None,
    progress: Progress,
    waits: Sequence[float],
) -> None:
    """Try the mirrors in their order; the first right file wins."""
    reasons = []
    for mirror in file.mirrors:
        address, _, member = mirror.partition("#")
        try:
            if member:
                archive = _archive(address, root)
                with file_lock(archive):
                    if not archive.exists():
                        _download_to(address, archive, None, progress, waits)
                    _extract_member(archive, member, root / file.path, expected)
            else:
                _download_to(address, root / file.path, expected, progress, waits)
            return
        except DownloadError as refusal:
            reasons.append(f"{urlsplit(address).hostname}: {refusal}")
    told = f" ({'; '.join(reasons)})" if reasons else ""
    raise UserError(
        f"Cannot fetch {file.path}{told}. {file.manual_download_hint(root)}"
    )


def _download_to(
    address: str,
    target: Path,
    expected: Checksum | None,
    progress: Progress,
    waits: Sequence[float],
) -> None:
    """Download one file; give it its name only if it is the right one."""
    part = PartialFile(target)
    resumed = part.size > 0
    size = expected.size if expected else None
    try:
        download(
            address,
            part,
            size=size,
            checked=expected is not None,
            progress=progress,
            waits=waits,
        )
    except OSError as error:
        raise UserError(f"Cannot write {target}: {error.strerror}.") from None
    if _verify_and_move(part, expected):
        return
    if resumed:
        # The bytes of an earlier attempt may have been the wrong ones: once more.
        _download_to(address, target, expected, progress, waits)
        return
    raise DownloadError("it gives another file (sha256 differs)")


def _extract_member(
    archive: Path, member: str, target: Path, expected: Checksum | None
) -> None:
    """Take one file out of an archive."""
    part = PartialFile(target)
    part.start(str(archive), "")
    try:
        with (
            zipfile.ZipFile(archive) as packed,
            packed.open(member) as source,
            part.path.open("wb") as copy,
        ):
            shutil.copyfileobj(source, copy)
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:
        part.discard()
        archive.unlink()
        raise DownloadError(
            f"its archive is damaged or lacks {member} ({error})"
        ) from None
    if not _verify_and_move(part, expected):
        raise DownloadError(f"its archive holds another {member} (sha256 differs)")


def _verify_and_move(part: PartialFile, expected: Checksum | None) -> bool:
    """Finish a part if it is the right file, else forget it."""
    if expected and Checksum.of(part.path) != expected:
        part.discard()
        return False
    part.commit()
    return True
