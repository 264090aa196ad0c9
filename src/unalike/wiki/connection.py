"""Connection: a line to a wiki that asks politely and reads no more than it should."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from socket import SHUT_RDWR
from urllib.parse import SplitResult, urlencode, urlsplit

from unalike.errors import UserError, lookup
from unalike.version import __version__

LIMIT = 1 << 26
"""The most bytes of one answer, packed or unpacked."""
GZIP = 16 + zlib.MAX_WBITS
LINES: dict[str, type[HTTPConnection]] = {
    "http": HTTPConnection,
    "https": HTTPSConnection,
}
FAULTS = (HTTPException, OSError, zlib.error)
"""What a line may break with."""


@dataclass(frozen=True)
class Reply:
    """What came back."""

    status: int
    headers: Message
    body: bytes


class Connection:
    """One line to one address; it stays open between requests."""

    def __init__(self, address: str, contact: str, timeout: float) -> None:
        parts = parsed(address)
        self.line = LINES[parts.scheme](parts.netloc, timeout=timeout)
        self.path = parts.path
        self.headers = {
            "User-Agent": agent(contact),
            "Accept-Encoding": "gzip",
            "Content-Type": "application/x-www-form-urlencoded",
            # The titles of fifty pages do not fit into an address, so this reads by
            # POST; the header lets a wiki answer from where it cannot write.
            "Promise-Non-Write-API-Action": "true",
        }

    def post(self, fields: Mapping[str, str]) -> Reply:
        """Send the fields of a form and read the answer."""
        body = urlencode(fields).encode()
        if self.line.sock is not None:
            # An idle line may have been closed at the other end: that is no fault.
            try:
                return self._send(body)
            except ConnectionError:
                self.line.close()
        return self._send(body)

    def hang_up(self) -> None:
        """End the line, also for a thread that listens to it."""
        if self.line.sock is not None:
            with suppress(OSError):
                self.line.sock.shutdown(SHUT_RDWR)
        self.line.close()

    def _send(self, body: bytes) -> Reply:
        try:
            self.line.request("POST", self.path, body, self.headers)
            with self.line.getresponse() as response:
                content = response.read(LIMIT + 1)
                reply = Reply(response.status, response.headers, content)
        except BaseException:
            self.line.close()
            raise
        if len(content) > LIMIT:
            self.line.close()
            raise UserError(f"The wiki answers with more than {LIMIT:,} bytes.")
        return unpacked(reply)


def unpacked(reply: Reply) -> Reply:
    """The same reply without its compression."""
    if reply.headers.get("Content-Encoding", "").lower() != "gzip":
        return reply
    stream = zlib.decompressobj(GZIP)
    body = stream.decompress(reply.body, LIMIT)
    if stream.unconsumed_tail:
        raise UserError(f"The wiki answers with more than {LIMIT:,} bytes.")
    return Reply(reply.status, reply.headers, body)


def parsed(address: str) -> SplitResult:
    """The parts of an address, if it is one that can be asked."""
    try:
        parts = urlsplit(address)
        port_is_number = parts.port is None or parts.port > 0
    except ValueError:
        port_is_number = False
    if not port_is_number or not parts.hostname or not parts.path:
        raise UserError(
            f"'{address}' is no address of an api.php, such as "
            "https://simple.wikipedia.org/w/api.php."
        )
    lookup(LINES, parts.scheme, "kind of address")
    if parts.username or parts.query or parts.fragment:
        raise UserError(f"'{address}' has more to it than host and path.")
    return parts


def agent(contact: str) -> str:
    """How the crawler introduces itself."""
    if not contact.isprintable() or not contact.isascii():
        raise UserError("The contact is an address or e-mail of printable ASCII.")
    return f"unalike/{__version__} ({contact or 'no contact given'})"
