"""A local HTTP server with configurable faults."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass
class Page:
    """One URL path and the faults of its responses."""

    body: bytes = b""
    tag: str | None = '"one"'
    breaks: list[int] = field(default_factory=list)
    """Bytes that the next responses send before the connection is closed."""
    statuses: list[int] = field(default_factory=list)
    """Statuses of the next responses, before the file is sent."""
    retry_after: str | None = None
    """Retry-After header of these responses."""
    ignores_range: bool = False
    length: int | None = None
    """Content-Length to send instead of the true one."""
    kind: str = "application/octet-stream"
    redirect: str | None = None
    pause: float = 0.0
    """Seconds between chunks of 4096 bytes."""


class Site:
    """A server, its pages, and the requests it got."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.pages: dict[str, Page] = {}
        self.asked: list[tuple[str, str | None]] = []
        """Path and Range header of each request."""

    def put(self, path: str, body: bytes, **how: object) -> str:
        self.pages[path] = Page(body, **how)
        return f"{self.address}{path}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site

    def do_GET(self) -> None:
        path, byte_range = self.path, self.headers.get("Range")
        self.site.asked.append((path, byte_range))
        page = self.site.pages.get(path)
        if page is None:
            self.send_error(404)
        elif page.statuses:
            self.send_response(page.statuses.pop(0))
            if page.retry_after is not None:
                self.send_header("Retry-After", page.retry_after)
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif page.redirect:
            self.send_response(302)
            self.send_header("Location", page.redirect)
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self.send_file(page, byte_range)

    def send_file(self, page: Page, byte_range: str | None) -> None:
        start = 0
        same = self.headers.get("If-Range") in (None, page.tag)
        if byte_range and same and not page.ignores_range:
            start = int(byte_range.removeprefix("bytes=").rstrip("-"))
            if start >= len(page.body):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(page.body)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
        body = page.body[start:]
        self.send_response(206 if start else 200)
        if start:
            last = len(page.body) - 1
            self.send_header("Content-Range", f"bytes {start}-{last}/{len(page.body)}")
        if page.tag:
            self.send_header("ETag", page.tag)
        self.send_header("Content-Type", page.kind)
        length = len(body) if page.length is None else page.length
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.send_chunks(page, body)

    def send_chunks(self, page: Page, body: bytes) -> None:
        sent = body[: page.breaks.pop(0)] if page.breaks else body
        for start in range(0, len(sent), 4096):
            self.wfile.write(sent[start : start + 4096])
            self.wfile.flush()
            time.sleep(page.pause)
        short = len(sent) < len(body) or page.length is not None
        self.close_connection = self.close_connection or short

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Ignore clients that were killed."""


@contextmanager
def serving(certificate: Path | None = None) -> Iterator[Site]:
    """Run a server inside a `with` block, over TLS with a file of key and certificate.

    A certificate is for localhost, and the server's address names it.
    """
    handler = type("Handler", (_Handler,), {})
    server = _Server(("127.0.0.1", 0), handler)
    host = "http://127.0.0.1"
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        host = "https://localhost"
    handler.site = site = Site(f"{host}:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
