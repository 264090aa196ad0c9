"""HTTP server of the report page, which shows new results while a sweep runs."""

from __future__ import annotations

import socket
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy.exc import DatabaseError

from unalike.errors import UserError
from unalike.site.live import LiveSite

HEADERS = {
    "Cache-Control": "no-cache",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Other sites can neither read this page nor show it in a frame."""


class Server(ThreadingHTTPServer):
    """Serves a page to requests whose Host header is allowed."""

    daemon_threads = True

    def __init__(self, host: str, port: int, live: LiveSite) -> None:
        self.live = live
        self.allowed_hosts = {"localhost", host.lower(), socket.gethostname().lower()}
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), Handler)

    @property
    def address(self) -> str:
        """The URL of the page."""
        host, port = self.server_address[:2]
        is_ipv6 = self.address_family == socket.AF_INET6
        return f"http://[{host!s}]:{port}/" if is_ipv6 else f"http://{host!s}:{port}/"

    def is_allowed_host(self, host: str) -> bool:
        """Is a Host header one of this server's names or an IP address?

        Another site can let its own name point at this machine (DNS rebinding), but
        the Host header then holds that name.
        """
        name = urlsplit(f"//{host}").hostname or ""
        return name in self.allowed_hosts or is_ip_address(name)


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version = "unalike"
    sys_version = ""

    def do_GET(self) -> None:
        """Send a file of the page, or 304 where it has not changed."""
        if not self.server.is_allowed_host(self.headers.get("Host", "")):
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return
        path = urlsplit(self.path).path.removeprefix("/") or "index.html"
        try:
            response = self.server.live.get(path)
        except DatabaseError:
            self.send_error(HTTPStatus.SERVICE_UNAVAILABLE)
            return
        if response is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        unchanged = self.headers.get("If-None-Match") == response.etag
        self.send_response(HTTPStatus.NOT_MODIFIED if unchanged else HTTPStatus.OK)
        body = b"" if unchanged else response.body
        headers = {
            "Content-Type": response.content_type,
            "ETag": response.etag,
            **HEADERS,
            "Content-Length": str(len(body)),
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Log nothing: a page polls every second."""


def make_server(live: LiveSite, host: str, port: int) -> Server:
    """A server that is bound to its address."""
    try:
        return Server(host, port, live)
    except (OSError, OverflowError) as error:
        raise UserError(f"Nothing can be served at {host}:{port}: {error}.") from None


def is_loopback(host: str) -> bool:
    """Can only this machine reach an address?"""
    return host == "localhost" or (is_ip_address(host) and ip_address(host).is_loopback)


def is_ip_address(host: str) -> bool:
    """Is a host given as an IP address?"""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
