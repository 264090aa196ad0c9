"""MediaWiki API client with keep-alive, rate limit, retries, Retry-After and maxlag."""

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
from typing import Any, NamedTuple, TypeVar
from urllib.parse import SplitResult, urlencode, urlsplit

from unalike.datasets.download import (
    RETRY_STATUSES,
    USER_AGENT,
    TransientError,
    parse_retry_after,
)
from unalike.errors import UserError, lookup, require_positive

MAX_RESPONSE_BYTES = 1 << 26
"""Maximum bytes of one response, compressed or decompressed."""
GZIP_WBITS = 16 + zlib.MAX_WBITS
CONNECTION_TYPES: dict[str, type[HTTPConnection]] = {
    "http": HTTPConnection,
    "https": HTTPSConnection,
}
NETWORK_ERRORS = (HTTPException, OSError, zlib.error)
"""Errors of a broken connection."""


class HttpResponse(NamedTuple):
    """Status, headers and body of a response."""

    status: int
    headers: Message
    body: bytes


class Connection:
    """A connection to one URL, which stays open between requests."""

    def __init__(self, url: str, contact: str, timeout: float) -> None:
        parts = parse_api_url(url)
        if not contact.isprintable() or not contact.isascii():
            raise UserError("The contact is an address or e-mail of printable ASCII.")
        self.connection = CONNECTION_TYPES[parts.scheme](parts.netloc, timeout=timeout)
        self.path = parts.path
        self.headers = {
            "User-Agent": f"{USER_AGENT} ({contact or 'no contact given'})",
            "Accept-Encoding": "gzip",
            "Content-Type": "application/x-www-form-urlencoded",
            # The titles of fifty pages do not fit into a URL, so requests are POST; the
            # header lets a read-only replica respond.
            "Promise-Non-Write-API-Action": "true",
        }

    def post(self, fields: Mapping[str, str]) -> HttpResponse:
        body = urlencode(fields).encode()
        if self.connection.sock is not None:
            # The server may have closed an idle connection, which is no error.
            try:
                return self._send(body)
            except ConnectionError:
                self.connection.close()
        return self._send(body)

    def close(self) -> None:
        """Close the connection, also for a thread that is reading from it."""
        if self.connection.sock is not None:
            with suppress(OSError):
                self.connection.sock.shutdown(SHUT_RDWR)
        self.connection.close()

    def _send(self, body: bytes) -> HttpResponse:
        try:
            self.connection.request("POST", self.path, body, self.headers)
            with self.connection.getresponse() as response:
                content = response.read(MAX_RESPONSE_BYTES + 1)
                encoding = response.headers.get("Content-Encoding", "").lower()
                if encoding == "gzip" and len(content) <= MAX_RESPONSE_BYTES:
                    stream = zlib.decompressobj(GZIP_WBITS)
                    content = stream.decompress(content, MAX_RESPONSE_BYTES + 1)
                if len(content) > MAX_RESPONSE_BYTES:
                    raise UserError(
                        f"The wiki sends more than {MAX_RESPONSE_BYTES:,} bytes."
                    )
                return HttpResponse(response.status, response.headers, content)
        except BaseException:
            self.connection.close()
            raise


def parse_api_url(url: str) -> SplitResult:
    """Split the URL of an api.php, or raise an error if it is none."""
    try:
        parts = urlsplit(url)
        port_is_number = parts.port is None or parts.port > 0
    except ValueError:
        port_is_number = False
    if not port_is_number or not parts.hostname or not parts.path:
        raise UserError(
            f"'{url}' is not the URL of an api.php, such as "
            "https://simple.wikipedia.org/w/api.php."
        )
    lookup(CONNECTION_TYPES, parts.scheme, "URL scheme")
    if parts.username or parts.query or parts.fragment:
        raise UserError(f"'{url}' must have host and path only.")
    return parts


class CrawlCancelledError(Exception):
    """The crawl is stopped while a thread waits for its next request."""


class RateLimiter:
    """Limits the requests per second of all threads, and pauses them together."""

    def __init__(self, rate: float) -> None:
        self.interval = 1 / rate if rate else 0.0
        self.next_time = 0.0
        self.num_requests = 0
        self.lock = threading.Lock()
        self.stopped = threading.Event()

    def wait(self) -> None:
        """Block until this thread may send a request."""
        seconds = 0.0
        while not self.stopped.wait(max(0.0, seconds)):
            with self.lock:
                now = time.monotonic()
                seconds = self.next_time - now
                if seconds <= 0:
                    self.next_time = now + self.interval
                    self.num_requests += 1
                    return
        raise CrawlCancelledError

    def pause(self, seconds: float) -> None:
        """Let no thread send a request for so many seconds."""
        with self.lock:
            self.next_time = max(self.next_time, time.monotonic() + seconds)


@dataclass(frozen=True, kw_only=True)
class CrawlPolicy:
    """Contact, rate limit, concurrency, retries and timeout of a crawl."""

    contact: str = ""
    """E-mail or URL where the operators of the wiki can reach you."""
    rate: float = 5.0
    """Maximum requests per second; 0 sets no limit."""
    concurrency: int = 1
    """Maximum number of concurrent requests."""
    maxlag: int = 5
    """Replication lag in seconds above which the wiki rejects requests."""
    max_attempts: int = 10
    """Attempts of the same request before an error."""
    initial_backoff: float = 1.0
    """Seconds before the second attempt; each later one waits twice as long."""
    max_backoff: float = 120.0
    timeout: float = 60.0
    """Seconds that a connection may be idle."""

    def __post_init__(self) -> None:
        rate, concurrency = self.rate, self.concurrency
        if not rate >= 0:
            raise UserError(f"The rate is 0 or more requests per second, not {rate}.")
        if not 1 <= concurrency <= 64:
            raise UserError(f"1 to 64 requests can run at once, not {concurrency}.")
        require_positive(self, "max_attempts")


BASE_PARAMS = {"format": "json", "formatversion": "2", "errorformat": "plaintext"}

TRANSIENT_CODES = ("maxlag", "ratelimited", "readonly")
"""Error codes of the API after which a request is repeated."""
INTERNAL_ERROR_PREFIX = "internal_api_error"

PARSE_ERRORS = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError)
"""Errors that a response with wrong contents may raise."""

Result = TypeVar("Result")


class ApiClient:
    """Client of a wiki's action API for any number of threads."""

    def __init__(self, url: str, policy: CrawlPolicy) -> None:
        parse_api_url(url)
        self.url = url
        self.policy = policy
        self.rate_limiter = RateLimiter(policy.rate)
        self.idle: SimpleQueue[Connection] = SimpleQueue()
        self.connections: list[Connection] = []

    def query(
        self, params: Mapping[str, str], parse: Callable[[dict[str, Any]], Result]
    ) -> Result:
        """Send a request, with retries, and return its parsed response."""
        backoff = self.policy.initial_backoff
        for attempts_left in reversed(range(self.policy.max_attempts)):
            self.rate_limiter.wait()
            try:
                document = self._request(params)
            except TransientError as error:
                reason, retry_after = str(error), error.retry_after
            else:
                try:
                    return parse(document)
                except PARSE_ERRORS as error:
                    problem = f"{type(error).__name__} {str(error)[:200]}"
                    reason, retry_after = f"an incomplete response: {problem}", 0.0
            if attempts_left:
                seconds = max(retry_after, min(backoff, self.policy.max_backoff))
                self.rate_limiter.pause(seconds)
                backoff *= 2
        raise UserError(
            f"{self.url} gave no valid response in {self.policy.max_attempts} attempts "
            f"({reason}); run the same command later to resume."
        )

    def close(self) -> None:
        """Cancel waiting threads and close all connections."""
        self.rate_limiter.stopped.set()
        for connection in self.connections:
            connection.close()

    def _request(self, params: Mapping[str, str]) -> dict[str, Any]:
        policy = self.policy
        try:
            connection = self.idle.get_nowait()
        except Empty:
            connection = Connection(self.url, policy.contact, policy.timeout)
            self.connections.append(connection)
        fields = {**BASE_PARAMS, "maxlag": str(policy.maxlag), **params}
        try:
            response = connection.post(fields)
        except NETWORK_ERRORS as error:
            raise TransientError(str(error) or type(error).__name__) from None
        finally:
            self.idle.put(connection)
        return self._document(response)

    def _document(self, response: HttpResponse) -> dict[str, Any]:
        """Return the JSON document of a response, or raise its error."""
        retry_after = parse_retry_after(response.headers.get("Retry-After"))
        if response.status in RETRY_STATUSES:
            raise TransientError(f"status {response.status}", retry_after)
        if response.status != 200:
            location = response.headers.get("Location")
            redirect = f" and redirects to {location}" if location else ""
            raise UserError(f"{self.url} has status {response.status}{redirect}.")
        if response.headers.get_content_type() == "text/html":
            raise UserError(f"{self.url} is a web page, not the API of a wiki.")
        try:
            document = json.loads(response.body)
        except (ValueError, RecursionError):
            raise TransientError("a response that is not JSON", retry_after) from None
        if not isinstance(document, dict):
            raise TransientError("a response that is no JSON object", retry_after)
        self._raise_api_error(document, retry_after)
        return document

    def _raise_api_error(self, document: dict[str, Any], retry_after: float) -> None:
        """Raise the error in a document, if it has one."""
        errors = document.get("errors") or [document.get("error")]
        if errors == [None]:
            return
        try:
            error = errors[0]
            code, text = str(error["code"]), str(error.get("text", error.get("info")))
        except (LookupError, TypeError, AttributeError):
            code, text = "unknown", str(errors)[:200]
        if code in TRANSIENT_CODES or code.startswith(INTERNAL_ERROR_PREFIX):
            raise TransientError(f"{code}: {text}", retry_after)
        raise UserError(f"{self.url} responds with the error {code}: {text}")
