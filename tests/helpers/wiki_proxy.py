"""A local HTTP server of a wiki API with scripted faults."""

from __future__ import annotations

import gzip
import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode
from urllib.request import Request, urlopen

from unalike.wiki.api_client import MAX_RESPONSE_BYTES

Form = dict[str, str]
Backend = Callable[[Form], dict[str, Any]]


@dataclass
class Front:
    """A server in front of a wiki that records requests and injects faults."""

    backend: Backend
    faults: list[str] = field(default_factory=list)
    """Faults of the next requests; '' is none."""
    retry_after: str = "0"
    pause: float = 0.0
    requests: list[Form] = field(default_factory=list)
    agents: set[str] = field(default_factory=set)
    answered: Counter[str] = field(default_factory=Counter)
    """Number of complete responses to each request."""
    concurrent: int = 0
    max_concurrent: int = 0
    address: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    front: Front

    def do_POST(self) -> None:
        front = self.front
        body = self.rfile.read(int(self.headers["Content-Length"]))
        form = dict(parse_qsl(body.decode(), keep_blank_values=True))
        with front.lock:
            front.requests.append(form)
            front.agents.add(self.headers["User-Agent"])
            front.concurrent += 1
            front.max_concurrent = max(front.max_concurrent, front.concurrent)
            fault = front.faults.pop(0) if front.faults else ""
        time.sleep(front.pause)
        try:
            (FAULTS | REFUSALS)[fault](self, form)
        finally:
            with front.lock:
                front.concurrent -= 1

    def give(
        self, body: bytes, status: int = 200, length: int | None = None, **headers: str
    ) -> None:
        self.send_response(status)
        kind = {"Content_Type": "application/json; charset=utf-8"}
        for name, value in (kind | headers).items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(length or len(body)))
        if status != 200 or b'"maxlag"' in body:
            self.send_header("Retry-After", self.front.retry_after)
        self.end_headers()
        self.wfile.write(body)

    def answer(self, form: Form) -> None:
        body = json.dumps(self.front.backend(form)).encode()
        self.give(body)
        with self.front.lock:
            self.front.answered[json.dumps(form, sort_keys=True)] += 1

    def truncate(self, form: Form) -> None:
        body = json.dumps(self.front.backend(form)).encode()
        self.give(body[: len(body) // 2])

    def break_off(self, form: Form) -> None:
        body = json.dumps(self.front.backend(form)).encode()
        self.give(body[: len(body) // 2], length=len(body))
        self.close_connection = True

    def reset(self, form: Form) -> None:
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.close_connection = True
        self.rfile.close()
        self.wfile.close()
        self.connection.close()

    def pack(self, form: Form) -> None:
        body = json.dumps(self.front.backend(form)).encode()
        self.give(gzip.compress(body), Content_Encoding="gzip")

    def dawdle(self, form: Form) -> None:
        time.sleep(0.6)
        self.answer(form)

    def lag(self, form: Form) -> None:
        error = {"code": "maxlag", "text": "Waiting for a copy: 7 seconds lagged."}
        self.give(json.dumps({"errors": [error]}).encode())

    def log_message(self, *_: object) -> None:
        pass


FAULTS: dict[str, Callable[[Handler, Form], None]] = {
    "": Handler.answer,
    "429": lambda handler, _: handler.give(b"too many", 429),
    "503": lambda handler, _: handler.give(b"<html>no</html>", 503),
    "maxlag": Handler.lag,
    "truncated": Handler.truncate,
    "broken off": Handler.break_off,
    "reset": Handler.reset,
    "slow": Handler.dawdle,
    "packed": Handler.pack,
    "no query": lambda handler, _: handler.give(b'{"batchcomplete": true}'),
    "list": lambda handler, _: handler.give(b"[1]"),
}

"""Faults after which a crawl retries."""

REFUSALS: dict[str, Callable[[Handler, Form], None]] = {
    "moved": lambda handler, _: handler.give(b"", 301, Location="https://elsewhere"),
    "forbidden": lambda handler, _: handler.give(b"Who are you?", 403),
    "page": lambda handler, _: handler.give(b"<html>", Content_Type="text/html"),
    "bomb": lambda handler, _: handler.give(
        gzip.compress(b" " * (MAX_RESPONSE_BYTES + 1)), Content_Encoding="gzip"
    ),
}
"""Faults that end a crawl."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_: object) -> None:
        """Ignore clients that closed their connection."""

    def shutdown_request(self, request: Any) -> None:
        try:
            super().shutdown_request(request)
        except OSError:
            """It was reset."""


@contextmanager
def fronting(backend: Backend) -> Iterator[Front]:
    """Run the server for a `with` block."""
    handler = type("OwnHandler", (Handler,), {})
    server = Server(("127.0.0.1", 0), handler)
    handler.front = front = Front(backend)
    front.address = f"http://127.0.0.1:{server.server_port}/api.php"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield front
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


DAYS = [f"2026-{month:02}-{day:02}" for month in (9, 10) for day in range(1, 31)]
PER_ANSWER = 7
"""Pages whose views are in one response."""


def daily_views(page_id: int) -> dict[str, int | None]:
    """Views of a page by day; some days, and all of every ninth page, are unknown."""
    counts = {day: (page_id * 37 + start) % 11 for start, day in enumerate(DAYS)}
    unknown = DAYS if page_id % 9 == 0 else DAYS[page_id % 5 :: 7]
    return {day: None if day in unknown else counts[day] for day in DAYS}


def total_views(page_id: int) -> int | None:
    known = [count for count in daily_views(page_id).values() if count is not None]
    return sum(known) if known else None


@dataclass(frozen=True)
class WithViews:
    """Responses of a real wiki, with the page views that an extension would add."""

    address: str

    def __call__(self, form: Form) -> dict[str, Any]:
        form = dict(form)
        wanted = form.get("prop", "").split("|")
        start = form.pop("pvipcontinue", "0")
        form.pop("pvipdays", None)
        form["prop"] = "|".join(prop for prop in wanted if prop != "pageviews")
        if form.get("continue") == "views":
            del form["continue"]
            form["prop"] = "info"
        document = self.forward(form)
        if "paraminfo" in document:
            document["paraminfo"]["modules"].append({"name": "pageviews"})
        elif "pageviews" in wanted:
            self.add(document, start)
        return document

    def forward(self, form: Form) -> dict[str, Any]:
        request = Request(self.address, urlencode(form).encode())
        with urlopen(request, timeout=60) as reply:
            return json.load(reply)

    def add(self, document: dict[str, Any], start: str) -> None:
        """Add the views of a few pages to a response, and the continuation."""
        pages = [
            page for page in document["query"].get("pages", []) if "pageid" in page
        ]
        pages.sort(key=lambda page: page["pageid"])
        first = len(pages) if start == "done" else int(start)
        for page in pages[first : first + PER_ANSWER]:
            page["pageviews"] = daily_views(page["pageid"])
        left = first + PER_ANSWER < len(pages)
        if left or "continue" in document:
            goes_on = document.setdefault("continue", {"continue": "views"})
            goes_on["pvipcontinue"] = str(first + PER_ANSWER) if left else "done"
