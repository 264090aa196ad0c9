"""A web server on this machine that misbehaves as told."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Page:
    """One address, and how the server treats those who ask for it."""

    body: bytes = b""
    tag: str | None = '"one"'
    breaks: list[int] = field(default_factory=list)
    """How many bytes the next answers give before the connection ends."""
    statuses: list[int] = field(default_factory=list)
    """Statuses of the next answers, before it works."""
    ignores_range: bool = False
    length: int | None = None
    """A length to claim instead of the true one."""
    kind: str = "application/octet-stream"
    redirect: str | None = None
    pause: float = 0.0
    """Seconds between pieces of 4096 bytes."""


class Site:
    """A server, its pages, and what it was asked."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.pages: dict[str, Page] = {}
        self.asked: list[tuple[str, str | None]] = []
        """Paths and the Range header that came with each."""

    def put(self, path: str, body: bytes, **how: object) -> str:
        self.pages[path] = Page(body, **how)
        return f"{self.address}{path}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site

    def do_GET(self) -> None:
        path, wanted = self.path, self.headers.get("Range")
        self.site.asked.append((path, wanted))
        page = self.site.pages.get(path)
        if page is None:
            self.send_error(404)
        elif page.statuses:
            self.send_error(page.statuses.pop(0))
        elif page.redirect:
            self.send_response(302)
            self.send_header("Location", page.redirect)
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self.give(page, wanted)

    def give(self, page: Page, wanted: str | None) -> None:
        start = 0
        same = self.headers.get("If-Range") in (None, page.tag)
        if wanted and same and not page.ignores_range:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            if start >= len(page.body):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(page.body)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
        rest = page.body[start:]
        self.send_response(206 if start else 200)
        if start:
            last = len(page.body) - 1
            self.send_header("Content-Range", f"bytes {start}-{last}/{len(page.body)}")
        if page.tag:
            self.send_header("ETag", page.tag)
        self.send_header("Content-Type", page.kind)
        length = len(rest) if page.length is None else page.length
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.pour(page, rest)

    def pour(self, page: Page, rest: bytes) -> None:
        given = rest[: page.breaks.pop(0)] if page.breaks else rest
        for place in range(0, len(given), 4096):
            self.wfile.write(given[place : place + 4096])
            self.wfile.flush()
            time.sleep(page.pause)
        short = len(given) < len(rest) or page.length is not None
        self.close_connection = self.close_connection or short

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that was killed is no news."""


@contextmanager
def serving() -> Iterator[Site]:
    """A server for the time of a block."""
    handler = type("Handler", (_Handler,), {})
    server = _Server(("127.0.0.1", 0), handler)
    handler.site = site = Site(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
