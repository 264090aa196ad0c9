"""Fetch: one raw file brought to its place unless it is there, checked either way."""

from __future__ import annotations

import shutil
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from unalike.datasets.checksum import Checksum
from unalike.datasets.fetching.download import WAITS, RefusedError, pull
from unalike.datasets.fetching.hashes import remember, remembered
from unalike.datasets.fetching.part import Part
from unalike.datasets.lock import alone
from unalike.datasets.remote import Remote
from unalike.datasets.root import is_writable
from unalike.errors import UserError
from unalike.progress import SILENT, Progress

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
    file: Remote,
    root: Path,
    *,
    progress: Progress = SILENT,
    waits: Sequence[float] = WAITS,
) -> Fetched:
    """Bring one file to its place, unless it is there; check it either way."""
    if place := file.find(root):
        return _look(file, root, place)
    target = root / file.path
    if not is_writable(target.parent):
        raise UserError(
            f"{file.path} is missing and cannot be fetched into {root}: "
            "the folder is read-only. Name another with --data."
        )
    with alone(target):
        if place := file.find(root):
            return _look(file, root, place)
        return _fetch(file, root, progress, waits)


def _fetch(
    file: Remote, root: Path, progress: Progress, waits: Sequence[float]
) -> Fetched:
    """Download a file that is not there."""
    expected = file.checksum or remembered(root).get(file.path)
    _from_mirrors(file, root, expected, progress, waits)
    place = root / file.path
    found = expected or Checksum.of(place)
    if expected is None:
        remember(root, file.path, found)
    return Fetched(file.path, place, found, downloaded=True, known=bool(expected))


def _look(file: Remote, root: Path, place: Path) -> Fetched:
    """Check a file that is there already; in another place it may be another copy."""
    path = str(place.relative_to(root))
    shipped = file.checksum if path == file.path else None
    expected = shipped or remembered(root).get(path)
    found = Checksum.of(place)
    if expected is None:
        if is_writable(root):
            remember(root, path, found)
    elif found != expected:
        raise UserError(
            f"{place} is not the file it should be (sha256 {found.sha256[:16]}… "
            f"instead of {expected.sha256[:16]}…); remove it to fetch it again."
        )
    return Fetched(path, place, found, downloaded=False, known=bool(expected))


def clear_archives(files: Sequence[Remote], root: Path) -> None:
    """Remove the archives that files were taken out of."""
    addresses = {mirror.split("#")[0] for file in files for mirror in file.mirrors}
    for archive in {_archive(address, root) for address in addresses}:
        if archive.exists():
            with alone(archive):
                archive.unlink(missing_ok=True)


def _archive(address: str, root: Path) -> Path:
    return root / DOWNLOADS / urlsplit(address).path.rpartition("/")[2]


def _from_mirrors(
    file: Remote,
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
                with alone(archive):
                    if not archive.exists():
                        _place(address, archive, None, progress, waits)
                    _unpack(archive, member, root / file.path, expected)
            else:
                _place(address, root / file.path, expected, progress, waits)
            return
        except RefusedError as refusal:
            reasons.append(f"{urlsplit(address).hostname}: {refusal}")
    told = f" ({'; '.join(reasons)})" if reasons else ""
    raise UserError(f"Cannot fetch {file.path}{told}. {file.advice(root)}")


def _place(
    address: str,
    target: Path,
    expected: Checksum | None,
    progress: Progress,
    waits: Sequence[float],
) -> None:
    """Download one file; give it its name only if it is the right one."""
    part = Part(target)
    resumed = part.size > 0
    size = expected.size if expected else None
    try:
        pull(
            address,
            part,
            size=size,
            checked=expected is not None,
            progress=progress,
            waits=waits,
        )
    except OSError as error:
        raise UserError(f"Cannot write {target}: {error.strerror}.") from None
    if _settle(part, expected):
        return
    if resumed:
        # The bytes of an earlier attempt may have been the wrong ones: once more.
        _place(address, target, expected, progress, waits)
        return
    raise RefusedError("it gives another file (sha256 differs)")


def _unpack(
    archive: Path, member: str, target: Path, expected: Checksum | None
) -> None:
    """Take one file out of an archive."""
    part = Part(target)
    part.begin(str(archive), "")
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
        raise RefusedError(
            f"its archive is damaged or lacks {member} ({error})"
        ) from None
    if not _settle(part, expected):
        raise RefusedError(f"its archive holds another {member} (sha256 differs)")


def _settle(part: Part, expected: Checksum | None) -> bool:
    """Finish a part if it is the right file, else forget it."""
    if expected and Checksum.of(part.path) != expected:
        part.discard()
        return False
    part.finish()
    return True
