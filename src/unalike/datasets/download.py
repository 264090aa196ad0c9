"""Resumable HTTP download with retries, Retry-After, Range and Google Drive pages."""

from __future__ import annotations

import errno
import json
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from html.parser import HTMLParser
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urljoin, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from unalike.files import read_json_object, sync
from unalike.progress import Progress
from unalike.version import __version__

USER_AGENT = f"unalike/{__version__}"
TIMEOUT = 30.0
CHUNK_BYTES = 1 << 18
SNIFF_BYTES = 512
"""First bytes of a response that are checked for HTML."""
MAX_PAGE_BYTES = 1 << 20
"""Maximum number of bytes of an HTML page that are parsed."""
BACKOFF_SECONDS = (1.0, 3.0, 10.0)
"""Seconds before each retry without progress; any received byte starts them anew."""
RETRY_STATUSES = (408, 425, 429, 500, 502, 503, 504)
"""HTTP statuses after which the same request may succeed later."""
MAX_RETRY_AFTER = 3600.0
"""Maximum of `parse_retry_after` in seconds."""
MAX_DOWNLOAD_WAIT = 120.0
"""Seconds of Retry-After up to which a download waits instead of giving up."""
GOOGLE_DRIVE_HOSTS = ("drive.google.com", "drive.usercontent.google.com")
DISK_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS)
"""Errors of the local disk, which no other mirror can avoid."""


class DownloadError(Exception):
    """A mirror does not give the file; the message is the reason."""


class TransientError(Exception):
    """The connection ended early, or the server is busy; a retry may succeed."""

    def __init__(self, reason: str, retry_after: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


@dataclass(frozen=True)
class PartialFile:
    """The bytes downloaded so far, and the URL and version they came from."""

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

    def start(self, url: str, version: str) -> None:
        """Delete the bytes so far and record where the next ones come from."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.unlink(missing_ok=True)
        self.metadata_path.write_text(json.dumps({"address": url, "version": version}))
        self.path.touch()

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)
        self.metadata_path.unlink(missing_ok=True)

    def commit(self) -> None:
        """Rename the complete file to its target, atomically."""
        sync(self.path)
        self.path.replace(self.target)
        self.metadata_path.unlink(missing_ok=True)


def download(
    url: str,
    part: PartialFile,
    *,
    size: int | None,
    progress: Progress,
    backoff: Sequence[float],
) -> None:
    """Download a URL into a partial file, and resume after broken connections.

    Bytes of an earlier attempt are used if they come from the same version of the same
    URL; if the server gives no version, only with a size, for then the checksum is
    known too.
    """
    attempts = 0
    while True:
        before = part.size
        try:
            _attempt(url, part, size, progress)
            return
        except (TransientError, HTTPException, OSError) as error:
            reason, retry_after = _reason(error), getattr(error, "retry_after", 0.0)
            if getattr(error, "errno", None) in DISK_ERRNOS:
                raise
            if _is_offline(error):
                raise DownloadError(reason) from None
        attempts = 0 if part.size > before else attempts + 1
        if attempts > len(backoff):
            raise DownloadError(reason)
        if retry_after > MAX_DOWNLOAD_WAIT:
            raise DownloadError(f"{reason}, to be tried again in {retry_after:.0f} s")
        time.sleep(max(retry_after, backoff[max(0, attempts - 1)] if backoff else 0))


def _attempt(url: str, part: PartialFile, size: int | None, progress: Progress) -> None:
    origin = read_json_object(part.metadata_path)
    version = origin.get("version", "")
    resumable = origin.get("address") == url and (version or size is not None)
    offset = part.size if resumable else 0
    try:
        response, first_bytes = _request_file(url, offset, version)
    except HTTPError as error:
        with error:
            _raise_for_status(error, part, offset, size)
        return
    with response:
        _receive(response, first_bytes, url, part, offset, size, progress)


def _request_file(url: str, offset: int, version: str) -> tuple[HTTPResponse, bytes]:
    """The response and its first bytes; a confirmation page is followed once."""
    headers = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity"}
    if offset:
        headers["Range"] = f"bytes={offset}-"
        if version:
            headers["If-Range"] = version
    opener = build_opener(SafeRedirectHandler)
    for _ in range(2):
        if not url.startswith(("http://", "https://")):
            raise DownloadError("it is not an HTTP URL")
        with ExitStack() as stack:
            opened = opener.open(Request(url, headers=headers), timeout=TIMEOUT)
            response: HTTPResponse = stack.enter_context(opened)
            first_bytes = response.read(SNIFF_BYTES)
            if not _is_html(response, first_bytes):
                stack.pop_all()
                return response, first_bytes
            page = first_bytes + response.read(MAX_PAGE_BYTES)
        confirmed = google_drive_confirm_url(page, response.url)
        if confirmed is None:
            break
        url = confirmed
    raise DownloadError("it answers with a web page instead of the file")


MAX_FILE_BYTES = 1 << 34
"""Largest download of a file whose size is not known."""


class SafeRedirectHandler(HTTPRedirectHandler):
    """Follows redirects by HTTP, and never from https to http."""

    def redirect_request(
        self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        scheme = urlsplit(newurl).scheme
        if scheme != "https" and scheme != req.type:
            raise DownloadError(f"it redirects from {req.type} to {scheme}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _raise_for_status(
    error: HTTPError, part: PartialFile, offset: int, size: int | None
) -> None:
    """Raise for an HTTP error; status 416 of a complete partial file is no error."""
    if error.code == 416 and offset:
        total = error.headers.get("Content-Range", "").rpartition("/")[2]
        if offset == (size or (int(total) if total.isdigit() else None)):
            return
        part.discard()
        raise TransientError("the bytes of an earlier attempt do not fit")
    reason = f"it answers {error.code} {error.reason}"
    if error.code in RETRY_STATUSES:
        retry_after = parse_retry_after(error.headers.get("Retry-After"))
        raise TransientError(reason, retry_after)
    raise DownloadError(reason)


def _receive(
    response: HTTPResponse,
    first_bytes: bytes,
    url: str,
    part: PartialFile,
    offset: int,
    size: int | None,
    progress: Progress,
) -> None:
    content_range = response.headers.get("Content-Range", "")
    continues = response.status == 206 and content_range.startswith(f"bytes {offset}-")
    if not (offset and continues):
        offset = 0
        _check_whole_file(response, first_bytes, part.target.name)
    length = response.headers.get("Content-Length", "")
    if length and not (length.isascii() and length.isdigit()):
        raise DownloadError(f"its length '{length[:20]}' is no number")
    total = offset + int(length) if length else None
    if size is not None and total not in (None, size):
        raise DownloadError(f"it offers {total} bytes instead of {size}")
    if not offset:
        part.start(url, _version(response))
    progress.stage(part.target.name, None if total is None else float(total), "bytes")
    progress.advance(offset)
    with part.path.open("ab") as file:
        chunk = first_bytes
        while chunk:
            file.write(chunk)
            progress.advance(len(chunk))
            if file.tell() > (size or MAX_FILE_BYTES):
                part.discard()
                raise DownloadError("it sends more bytes than the file has")
            chunk = response.read1(CHUNK_BYTES)
    if total is not None and part.size < total:
        raise TransientError(f"it broke off after {part.size} of {total} bytes")


MAGIC_NUMBERS = {
    ".gz": (b"\x1f\x8b",),
    ".npy": (b"\x93NUMPY",),
    ".npz": (b"PK\x03\x04", b"PK\x05\x06"),
    ".zip": (b"PK\x03\x04", b"PK\x05\x06"),
}
"""First bytes of a file by its suffix."""


def _check_whole_file(response: HTTPResponse, first_bytes: bytes, name: str) -> None:
    """Refuse a response that cannot be the whole file."""
    if response.status != 200:
        raise DownloadError(f"it answers {response.status} to a request of all bytes")
    coding = response.headers.get("Content-Encoding", "identity")
    if coding.lower() != "identity":
        raise DownloadError(f"it sends the file encoded as {coding[:20]}")
    if not first_bytes:
        raise DownloadError("it sends an empty file")
    magic = MAGIC_NUMBERS.get(Path(name).suffix.lower())
    if magic and not first_bytes.startswith(magic):
        raise DownloadError(f"it sends a file that is no {Path(name).suffix}")


def _version(response: HTTPResponse) -> str:
    """The strong ETag or the modification date, as If-Range takes it."""
    tag = response.headers.get("ETag", "")
    strong = tag and not tag.startswith("W/")
    return tag if strong else response.headers.get("Last-Modified", "")


def _is_html(response: HTTPResponse, first_bytes: bytes) -> bool:
    start = first_bytes[:64].lstrip().lower()
    content_type = response.headers.get_content_type()
    return content_type == "text/html" or start.startswith(
        (b"<!doctype html", b"<html")
    )


def _is_offline(error: Exception) -> bool:
    """Whether the server cannot be reached at all, so that retries are useless."""
    reason = error.reason if isinstance(error, URLError) else None
    unreachable = getattr(reason, "errno", None) == errno.ENETUNREACH
    return unreachable or isinstance(reason, socket.gaierror)


def _reason(error: Exception) -> str:
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror
    return str(reason) or type(reason).__name__


def parse_retry_after(header: str | None) -> float:
    """Seconds of a Retry-After header, which is a number or a date."""
    if header is None:
        return 0.0
    try:
        seconds = float(header)
    except ValueError:
        try:
            moment = parsedate_to_datetime(header)
        except ValueError:
            return 0.0
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = (moment - datetime.now(UTC)).total_seconds()
    return min(MAX_RETRY_AFTER, max(0.0, seconds))


class _DownloadForm(HTMLParser):
    """The download form of an HTML page: its URL and its hidden fields."""

    def __init__(self) -> None:
        super().__init__()
        self.action: str | None = None
        self.fields: dict[str, str] = {}
        self.inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {key: value or "" for key, value in attrs}
        if tag == "form":
            self.inside = attributes.get("id") == "download-form"
            self.action = attributes.get("action") if self.inside else self.action
        elif tag == "input" and self.inside and attributes.get("name"):
            self.fields[attributes["name"]] = attributes.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "form"


def google_drive_confirm_url(page: bytes, url: str) -> str | None:
    """The URL behind the confirmation of Google Drive for large files, if it is one.

    A form is followed on the same host only, or between the hosts of Google Drive.
    """
    form = _DownloadForm()
    form.feed(page.decode("utf-8", "replace"))
    if not form.action:
        return None
    try:
        target = urljoin(url, form.action)
        own, other = urlsplit(url), urlsplit(target)
    except ValueError:
        return None
    hosts = {own.hostname, other.hostname}
    same_host = own.netloc == other.netloc or hosts <= set(GOOGLE_DRIVE_HOSTS)
    if own.scheme != other.scheme or not same_host:
        return None
    return f"{target}?{urlencode(form.fields)}"
