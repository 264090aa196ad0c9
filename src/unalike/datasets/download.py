"""Resumable HTTP download with retries, Range/If-Range, Google Drive confirmation."""

from __future__ import annotations

import errno
import json
import os
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urljoin
from urllib.request import Request, urlopen

from unalike.progress import Progress
from unalike.version import __version__

# Part: a download on its way, beside the place where the whole file will be.


@dataclass(frozen=True)
class PartialFile:
    """The bytes so far, and a note of where they came from."""

    target: Path

    @property
    def path(self) -> Path:
        return self.target.with_name(f".{self.target.name}.part")

    @property
    def metadata_path(self) -> Path:
        return self.target.with_name(f".{self.target.name}.part.json")

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def origin(self) -> dict[str, Any]:
        """The address and version that the bytes so far belong to."""
        try:
            told = json.loads(self.metadata_path.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return told if isinstance(told, dict) else {}

    def start(self, address: str, version: str) -> None:
        """Forget the bytes so far and note where the next ones come from."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.unlink(missing_ok=True)
        self.metadata_path.write_text(
            json.dumps({"address": address, "version": version})
        )
        self.path.touch()

    def discard(self) -> None:
        """Forget everything."""
        self.path.unlink(missing_ok=True)
        self.metadata_path.unlink(missing_ok=True)

    def commit(self) -> None:
        """Give the whole file its name, at once and for good."""
        with self.path.open("rb") as file:
            os.fsync(file.fileno())
        self.path.replace(self.target)
        self.metadata_path.unlink(missing_ok=True)


# Confirm: Google Drive's page about large files, and the address behind its button.


class _DownloadForm(HTMLParser):
    """Collects the download form of a page: its address and its hidden fields."""

    def __init__(self) -> None:
        super().__init__()
        self.action: str | None = None
        self.fields: dict[str, str] = {}
        self.inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {key: value or "" for key, value in attrs}
        if tag == "form":
            self.inside = told.get("id") == "download-form"
            self.action = told.get("action") if self.inside else self.action
        elif tag == "input" and self.inside and told.get("name"):
            self.fields[told["name"]] = told.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "form"


def google_drive_confirm_url(page: bytes, address: str) -> str | None:
    """Where Google Drive's page about large files leads, if this is that page."""
    forms = _DownloadForm()
    forms.feed(page.decode("utf-8", "replace"))
    if not forms.action:
        return None
    return f"{urljoin(address, forms.action)}?{urlencode(forms.fields)}"


# Downloads that survive breaks.


CHUNK = 1 << 18
SNIFF_BYTES = 512
"""Bytes that tell a web page from a file."""
MAX_PAGE_BYTES = 1 << 20
"""The most bytes of a web page that are looked at."""
TIMEOUT = 30.0
BACKOFF_SECONDS = (1.0, 3.0, 10.0)
"""Seconds before the next try while nothing comes; any progress starts them anew."""

RETRY_STATUSES = (408, 425, 429, 500, 502, 503, 504)
"""HTTP statuses after which the same request may succeed later."""


DISK_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS)
"""Errors of the disk, which no other mirror can help."""


class DownloadError(Exception):
    """This mirror does not give the file; the text says why."""


class IncompleteDownloadError(Exception):
    """The connection ended early; the next try goes on from there."""


def download(
    address: str,
    part: PartialFile,
    *,
    size: int | None,
    checked: bool,
    progress: Progress,
    waits: Sequence[float] = BACKOFF_SECONDS,
) -> None:
    """Fill a part from one address, going on after breaks.

    Bytes of an earlier attempt are kept if they come from the same version of the same
    address; where the server names no version, only if the result is `checked` after.
    """
    tries = 0
    while True:
        before = part.size
        try:
            _attempt(address, part, size=size, checked=checked, progress=progress)
            return
        except (IncompleteDownloadError, HTTPException, OSError) as error:
            reason = _reason(error)
            if getattr(error, "errno", None) in DISK_ERRNOS:
                raise
            if _is_offline(error):
                raise DownloadError(reason) from None
        tries = 0 if part.size > before else tries + 1
        if tries > len(waits):
            raise DownloadError(reason)
        time.sleep(waits[max(0, tries - 1)] if waits else 0)


def _attempt(
    address: str,
    part: PartialFile,
    *,
    size: int | None,
    checked: bool,
    progress: Progress,
) -> None:
    origin = part.origin()
    version = origin.get("version", "")
    usable = origin.get("address") == address and (version or checked)
    have = part.size if usable else 0
    try:
        response, first = _answer(address, have, version)
    except HTTPError as error:
        with error:
            _raise_for_status(error, part, have, size)
        return
    with response:
        _receive(response, first, address, part, have, size, progress)


def _answer(address: str, have: int, version: str) -> tuple[HTTPResponse, bytes]:
    """The answer and its first bytes; a page that asks once more is told yes."""
    for _ in range(2):
        response = _open(address, have, version)
        try:
            first = response.read(SNIFF_BYTES)
            if not _is_page(response, first):
                return response, first
            page = first + response.read(MAX_PAGE_BYTES)
        except BaseException:
            response.close()
            raise
        response.close()
        onward = google_drive_confirm_url(page, response.url)
        if onward is None:
            break
        address = onward
    raise DownloadError("it answers with a web page instead of the file")


def _open(address: str, have: int, version: str) -> HTTPResponse:
    if not address.startswith(("http://", "https://")):
        raise DownloadError("it is not a web address")
    headers = {"User-Agent": f"unalike/{__version__}", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
        if version:
            headers["If-Range"] = version
    response: HTTPResponse = urlopen(Request(address, headers=headers), timeout=TIMEOUT)
    return response


def _raise_for_status(
    error: HTTPError, part: PartialFile, have: int, size: int | None
) -> None:
    """Raise what an HTTP error means; a full part asked for more is no error."""
    if error.code == 416 and have:
        total = error.headers.get("Content-Range", "").rpartition("/")[2]
        if have == (size or (int(total) if total.isdigit() else None)):
            return
        part.discard()
        raise IncompleteDownloadError("the bytes so far do not fit")
    if error.code in RETRY_STATUSES:
        raise IncompleteDownloadError(f"it answers {error.code} {error.reason}")
    raise DownloadError(f"it answers {error.code} {error.reason}")


def _receive(
    response: HTTPResponse,
    first: bytes,
    address: str,
    part: PartialFile,
    have: int,
    size: int | None,
    progress: Progress,
) -> None:
    if not _is_partial_content(response, have):
        have = 0
    length = response.headers.get("Content-Length", "")
    total = have + int(length) if length.isdigit() else None
    if size is not None and total not in (None, size):
        raise DownloadError(f"it offers {total} bytes instead of {size}")
    if not have:
        part.start(address, _version(response))
    whole = None if total is None else float(total)
    progress.stage(part.target.name, whole, "bytes")
    progress.advance(have)
    with part.path.open("ab") as file:
        piece = first
        while piece:
            file.write(piece)
            progress.advance(len(piece))
            piece = response.read1(CHUNK)
    if total is not None and part.size < total:
        raise IncompleteDownloadError(
            f"it broke off after {part.size} of {total} bytes"
        )


def _is_partial_content(response: HTTPResponse, have: int) -> bool:
    """Does the answer go on where the part ends, rather than begin anew?"""
    span = response.headers.get("Content-Range", "")
    return bool(have) and response.status == 206 and span.startswith(f"bytes {have}-")


def _version(response: HTTPResponse) -> str:
    """What tells this version of the file from others, as If-Range takes it."""
    tag = response.headers.get("ETag", "")
    strong = tag and not tag.startswith("W/")
    return tag if strong else response.headers.get("Last-Modified", "")


def _is_page(response: HTTPResponse, first: bytes) -> bool:
    opening = first[:64].lstrip().lower()
    kind = response.headers.get_content_type()
    return kind == "text/html" or opening.startswith((b"<!doctype html", b"<html"))


def _is_offline(error: Exception) -> bool:
    """Is there no way to the server at all, so that waiting will not help?"""
    reason = error.reason if isinstance(error, URLError) else None
    unreachable = getattr(reason, "errno", None) == errno.ENETUNREACH
    return unreachable or isinstance(reason, socket.gaierror)


def _reason(error: Exception) -> str:
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror
    return str(reason) or type(reason).__name__
