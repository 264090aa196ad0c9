"""Downloads that survive breaks."""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Sequence
from http.client import HTTPException, HTTPResponse
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from unalike.datasets.fetching.confirm import confirmed_address
from unalike.datasets.fetching.part import Part
from unalike.progress import Progress
from unalike.version import __version__

CHUNK = 1 << 18
OPENING = 512
"""Bytes that tell a web page from a file."""
PAGE = 1 << 20
"""The most bytes of a web page that are looked at."""
TIMEOUT = 30.0
WAITS = (1.0, 3.0, 10.0)
"""Seconds before the next try while nothing comes; any progress starts them anew."""

PASSING = (408, 425, 429, 500, 502, 503, 504)
"""HTTP statuses after which the same request may succeed later."""


DISK = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS)
"""Errors of the disk, which no other mirror can help."""


class RefusedError(Exception):
    """This mirror does not give the file; the text says why."""


class BrokenError(Exception):
    """The connection ended early; the next try goes on from there."""


def pull(
    address: str,
    part: Part,
    *,
    size: int | None,
    checked: bool,
    progress: Progress,
    waits: Sequence[float] = WAITS,
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
        except (BrokenError, HTTPException, OSError) as error:
            reason = _told(error)
            if getattr(error, "errno", None) in DISK:
                raise
            if _is_offline(error):
                raise RefusedError(reason) from None
        tries = 0 if part.size > before else tries + 1
        if tries > len(waits):
            raise RefusedError(reason)
        time.sleep(waits[max(0, tries - 1)] if waits else 0)


def _attempt(
    address: str, part: Part, *, size: int | None, checked: bool, progress: Progress
) -> None:
    origin = part.origin()
    version = origin.get("version", "")
    usable = origin.get("address") == address and (version or checked)
    have = part.size if usable else 0
    try:
        response, first = _answer(address, have, version)
    except HTTPError as error:
        with error:
            _judge(error, part, have, size)
        return
    with response:
        _receive(response, first, address, part, have, size, progress)


def _answer(address: str, have: int, version: str) -> tuple[HTTPResponse, bytes]:
    """The answer and its first bytes; a page that asks once more is told yes."""
    for _ in range(2):
        response = _open(address, have, version)
        try:
            first = response.read(OPENING)
            if not _is_page(response, first):
                return response, first
            page = first + response.read(PAGE)
        except BaseException:
            response.close()
            raise
        response.close()
        onward = confirmed_address(page, response.url)
        if onward is None:
            break
        address = onward
    raise RefusedError("it answers with a web page instead of the file")


def _open(address: str, have: int, version: str) -> HTTPResponse:
    if not address.startswith(("http://", "https://")):
        raise RefusedError("it is not a web address")
    headers = {"User-Agent": f"unalike/{__version__}", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
        if version:
            headers["If-Range"] = version
    response: HTTPResponse = urlopen(Request(address, headers=headers), timeout=TIMEOUT)
    return response


def _judge(error: HTTPError, part: Part, have: int, size: int | None) -> None:
    """Raise what an HTTP error means; a full part asked for more is no error."""
    if error.code == 416 and have:
        total = error.headers.get("Content-Range", "").rpartition("/")[2]
        if have == (size or (int(total) if total.isdigit() else None)):
            return
        part.discard()
        raise BrokenError("the bytes so far do not fit")
    if error.code in PASSING:
        raise BrokenError(f"it answers {error.code} {error.reason}")
    raise RefusedError(f"it answers {error.code} {error.reason}")


def _receive(
    response: HTTPResponse,
    first: bytes,
    address: str,
    part: Part,
    have: int,
    size: int | None,
    progress: Progress,
) -> None:
    if not _continues(response, have):
        have = 0
    length = response.headers.get("Content-Length", "")
    total = have + int(length) if length.isdigit() else None
    if size is not None and total not in (None, size):
        raise RefusedError(f"it offers {total} bytes instead of {size}")
    if not have:
        part.begin(address, _version(response))
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
        raise BrokenError(f"it broke off after {part.size} of {total} bytes")


def _continues(response: HTTPResponse, have: int) -> bool:
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


def _told(error: Exception) -> str:
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror
    return str(reason) or type(reason).__name__
