"""Serve: the site on an address of this machine, while a sweep runs."""

from __future__ import annotations

import socket
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy.exc import DatabaseError

from unalike.errors import UserError
from unalike.site.live import Live

HEADERS = {
    "Cache-Control": "no-cache",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""No other site may look into this one, nor show it as a part of its own."""


class Server(ThreadingHTTPServer):
    """A server that knows what it serves and under which names it may be called."""

    daemon_threads = True

    def __init__(self, host: str, port: int, live: Live) -> None:
        self.live = live
        self.names = {"localhost", host.lower(), socket.gethostname().lower()}
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), Handler)

    @property
    def address(self) -> str:
        """What to open in a browser."""
        host, port = self.server_address[:2]
        told = f"[{host!s}]" if self.address_family == socket.AF_INET6 else str(host)
        return f"http://{told}:{port}/"

    def knows(self, host: str) -> bool:
        """Is a Host header one of ours?

        A site that lets its name point at this machine is told apart by that name;
        numbers cannot be made to point elsewhere.
        """
        name = urlsplit(f"//{host}").hostname or ""
        return name in self.names or is_number(name)


class Handler(BaseHTTPRequestHandler):
    """Answers one question of a browser."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version = "unalike"
    sys_version = ""

    def do_GET(self) -> None:
        """Send a file of the site, or that it has not changed."""
        if not self.server.knows(self.headers.get("Host", "")):
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return
        path = urlsplit(self.path).path.removeprefix("/") or "index.html"
        try:
            found = self.server.live.answer(path)
        except DatabaseError:
            self.send_error(HTTPStatus.SERVICE_UNAVAILABLE)
            return
        if found is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        same = self.headers.get("If-None-Match") == found.tag
        self.send_response(HTTPStatus.NOT_MODIFIED if same else HTTPStatus.OK)
        body = b"" if same else found.body
        headers = {"Content-Type": found.kind, "ETag": found.tag, **HEADERS}
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing: a page asks every second."""


def server(live: Live, host: str, port: int) -> Server:
    """A server that is ready to serve."""
    try:
        return Server(host, port, live)
    except (OSError, OverflowError) as error:
        raise UserError(f"Nothing can be served at {host}:{port}: {error}.") from None


def is_loopback(host: str) -> bool:
    """Can only this machine reach an address?"""
    return host == "localhost" or (is_number(host) and ip_address(host).is_loopback)


def is_number(host: str) -> bool:
    """Is a host told by its number rather than a name?"""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
