"""MediaWiki API client: keep-alive POST, rate limit, retry, Retry-After, maxlag."""

from __future__ import annotations

import json
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from queue import Empty, SimpleQueue
from socket import SHUT_RDWR
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlencode, urlsplit

from unalike.datasets.download import (
    RETRY_STATUSES,
    USER_AGENT,
    parse_retry_after,
)
from unalike.errors import UserError, lookup

# Connection: a line to a wiki that asks politely and reads no more than it should.


MAX_RESPONSE_BYTES = 1 << 26
"""The most bytes of one answer, packed or unpacked."""
GZIP = 16 + zlib.MAX_WBITS
CONNECTION_TYPES: dict[str, type[HTTPConnection]] = {
    "http": HTTPConnection,
    "https": HTTPSConnection,
}
NETWORK_ERRORS = (HTTPException, OSError, zlib.error)
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
        parts = parse_api_url(address)
        self.connection = CONNECTION_TYPES[parts.scheme](parts.netloc, timeout=timeout)
        self.path = parts.path
        self.headers = {
            "User-Agent": user_agent(contact),
            "Accept-Encoding": "gzip",
            "Content-Type": "application/x-www-form-urlencoded",
            # The titles of fifty pages do not fit into an address, so this reads by
            # POST; the header lets a wiki answer from where it cannot write.
            "Promise-Non-Write-API-Action": "true",
        }

    def post(self, fields: Mapping[str, str]) -> Reply:
        """Send the fields of a form and read the answer."""
        body = urlencode(fields).encode()
        if self.connection.sock is not None:
            # An idle line may have been closed at the other end: that is no fault.
            try:
                return self._send(body)
            except ConnectionError:
                self.connection.close()
        return self._send(body)

    def close(self) -> None:
        """End the line, also for a thread that listens to it."""
        if self.connection.sock is not None:
            with suppress(OSError):
                self.connection.sock.shutdown(SHUT_RDWR)
        self.connection.close()

    def _send(self, body: bytes) -> Reply:
        try:
            self.connection.request("POST", self.path, body, self.headers)
            with self.connection.getresponse() as response:
                content = response.read(MAX_RESPONSE_BYTES + 1)
                reply = Reply(response.status, response.headers, content)
        except BaseException:
            self.connection.close()
            raise
        if len(content) > MAX_RESPONSE_BYTES:
            self.connection.close()
            raise UserError(
                f"The wiki answers with more than {MAX_RESPONSE_BYTES:,} bytes."
            )
        return decompressed(reply)


def decompressed(reply: Reply) -> Reply:
    """The same reply without its compression."""
    if reply.headers.get("Content-Encoding", "").lower() != "gzip":
        return reply
    stream = zlib.decompressobj(GZIP)
    body = stream.decompress(reply.body, MAX_RESPONSE_BYTES)
    if stream.unconsumed_tail:
        raise UserError(
            f"The wiki answers with more than {MAX_RESPONSE_BYTES:,} bytes."
        )
    return Reply(reply.status, reply.headers, body)


def parse_api_url(address: str) -> SplitResult:
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
    lookup(CONNECTION_TYPES, parts.scheme, "kind of address")
    if parts.username or parts.query or parts.fragment:
        raise UserError(f"'{address}' has more to it than host and path.")
    return parts


def user_agent(contact: str) -> str:
    """How the crawler introduces itself."""
    if not contact.isprintable() or not contact.isascii():
        raise UserError("The contact is an address or e-mail of printable ASCII.")
    return f"{USER_AGENT} ({contact or 'no contact given'})"


# Pace: when the next request may go out, for all threads together.


class CrawlCancelledError(Exception):
    """The crawl is being ended; nobody waits any longer."""


class RateLimiter:
    """A rate that is never exceeded, and rests that everybody keeps."""

    def __init__(self, rate: float) -> None:
        self.interval = 1 / rate if rate else 0.0
        self.next_time = 0.0
        self.num_requests = 0
        self.lock = threading.Lock()
        self.stopped = threading.Event()

    def wait(self) -> None:
        """Come back when it is this thread's turn."""
        while not self.stopped.wait(self._left()):
            with self.lock:
                now = time.monotonic()
                if now >= self.next_time:
                    self.next_time = now + self.interval
                    self.num_requests += 1
                    return
        raise CrawlCancelledError

    def pause(self, seconds: float) -> None:
        """Nobody asks for so many seconds."""
        with self.lock:
            self.next_time = max(self.next_time, time.monotonic() + seconds)

    def _left(self) -> float:
        with self.lock:
            return max(0.0, self.next_time - time.monotonic())

    def stop(self) -> None:
        """Wake everybody up for good."""
        self.stopped.set()


# Manners: how a crawler treats the wiki it reads.


@dataclass(frozen=True, kw_only=True)
class CrawlPolicy:
    """Who asks, how often, and how patiently."""

    contact: str = ""
    """An e-mail or web address where the wiki's operators reach you."""
    rate: float = 5.0
    """Requests a second at most; 0 sets no limit."""
    at_once: int = 1
    """Requests that may be under way together."""
    maxlag: int = 5
    """Seconds that copies of the wiki may lag behind before it is left in peace."""
    tries: int = 10
    """How often the same request is sent before giving up."""
    first_wait: float = 1.0
    """Seconds before the second try; each later wait is twice as long."""
    longest_wait: float = 120.0
    timeout: float = 60.0
    """Seconds that a connection may be silent."""

    def __post_init__(self) -> None:
        if not self.rate >= 0:
            raise UserError(
                f"The rate is 0 or more requests a second, not {self.rate}."
            )
        if not 1 <= self.at_once <= 64:
            raise UserError(f"1 to 64 requests go at once, not {self.at_once}.")


# Api: questions to the action API of a wiki, asked until they are answered.


BASE_PARAMS = {"format": "json", "formatversion": "2", "errorformat": "plaintext"}

TRANSIENT_CODES = ("maxlag", "ratelimited", "readonly")
"""Errors of the API that pass, and how those begin that are the wiki's own faults."""
INTERNAL = "internal_api_error"

Read = TypeVar("Read")


class TransientError(Exception):
    """This answer is no use, the next may be; the text says why."""

    def __init__(self, reason: str, rest: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_after = rest


class ApiClient:
    """A wiki that answers questions, to any number of threads."""

    def __init__(self, address: str, manners: CrawlPolicy) -> None:
        parse_api_url(address)
        self.address = address
        self.manners = manners
        self.pace = RateLimiter(manners.rate)
        self.idle: SimpleQueue[Connection] = SimpleQueue()
        self.connections: list[Connection] = []

    def query(
        self, question: Mapping[str, str], read: Callable[[dict[str, Any]], Read]
    ) -> Read:
        """What `read` makes of the answer, after as many tries as manners allow."""
        wait = self.manners.first_wait
        for left in reversed(range(self.manners.tries)):
            self.pace.wait()
            try:
                return self._read(self._ask(question), read)
            except TransientError as error:
                reason, rest = str(error), error.retry_after
            if left:
                self.pace.pause(max(rest, min(wait, self.manners.longest_wait)))
                wait *= 2
        raise UserError(
            f"{self.address} gave no useful answer in {self.manners.tries} tries "
            f"({reason}); the same command goes on later."
        )

    def close(self) -> None:
        """Let go of waiting threads and hang up."""
        self.pace.stop()
        for line in self.connections:
            line.close()

    def _read(
        self, answer: dict[str, Any], read: Callable[[dict[str, Any]], Read]
    ) -> Read:
        try:
            return read(answer)
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise TransientError(f"an answer without its parts: {error!r}") from None

    def _ask(self, question: Mapping[str, str]) -> dict[str, Any]:
        try:
            line = self.idle.get_nowait()
        except Empty:
            manners = self.manners
            line = Connection(self.address, manners.contact, manners.timeout)
            self.connections.append(line)
        try:
            reply = line.post(
                {**BASE_PARAMS, "maxlag": str(self.manners.maxlag), **question}
            )
        except NETWORK_ERRORS as error:
            raise TransientError(str(error) or type(error).__name__) from None
        finally:
            self.idle.put(line)
        return self._parse(reply)

    def _parse(self, reply: Reply) -> dict[str, Any]:
        rest = parse_retry_after(reply.headers.get("Retry-After"))
        if reply.status in RETRY_STATUSES:
            raise TransientError(f"status {reply.status}", rest)
        if reply.status != 200:
            onward = reply.headers.get("Location")
            told = f" and points to {onward}" if onward else ""
            raise UserError(f"{self.address} answers {reply.status}{told}.")
        if reply.headers.get_content_type() == "text/html":
            raise UserError(f"{self.address} is a web page, not the API of a wiki.")
        try:
            answer = json.loads(reply.body)
        except ValueError:
            raise TransientError("an answer that is not JSON", rest) from None
        if not isinstance(answer, dict):
            raise TransientError("an answer that is no JSON object", rest)
        self._raise_api_error(answer, rest)
        return answer

    def _raise_api_error(self, answer: dict[str, Any], rest: float) -> None:
        """Raise what the errors of an answer mean, if it has any."""
        errors = answer.get("errors") or [answer.get("error")]
        if errors == [None]:
            return
        try:
            error = errors[0]
            code, text = str(error["code"]), str(error.get("text", error.get("info")))
        except (LookupError, TypeError, AttributeError):
            code, text = "unknown", str(errors)[:200]
        if code in TRANSIENT_CODES or code.startswith(INTERNAL):
            raise TransientError(f"{code}: {text}", rest)
        raise UserError(f"{self.address} answers with the error {code}: {text}")
