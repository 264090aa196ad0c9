"""HTTP servers on this machine: allowed hosts, deadlines, limits on connections."""

from __future__ import annotations

import io
import socket
import sys
import time
from collections.abc import Collection
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from threading import BoundedSemaphore
from typing import Any, ClassVar
from urllib.parse import urlsplit

from unalike.errors import UserError

REQUEST_SECONDS = 30.0
"""Seconds in which a request must arrive, after the last one or the connection."""
MAX_CONNECTIONS = 512


class Server(ThreadingHTTPServer):
    """Serves requests whose Host header it knows, on one address."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        host: str,
        port: int,
        handler: type[Handler],
        names: Collection[str] = (),
    ) -> None:
        self.allowed_hosts = {"localhost", host.lower(), *names}
        self.free_connections = BoundedSemaphore(MAX_CONNECTIONS)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), handler)
        except (OSError, OverflowError) as error:
            raise UserError(
                f"Nothing can be served at {host}:{port}: {error}."
            ) from None

    @property
    def address(self) -> str:
        host, port = self.server_address[:2]
        is_ipv6 = self.address_family == socket.AF_INET6
        return f"http://[{host!s}]:{port}/" if is_ipv6 else f"http://{host!s}:{port}/"

    def serve_until_interrupted(self) -> None:
        with suppress(KeyboardInterrupt):
            self.serve_forever(poll_interval=0.2)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection, or close it if there are too many."""
        if self.free_connections.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.free_connections.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print the error of a request; a client that went away is none."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class DeadlineReader(io.RawIOBase):
    """Reads a socket until a deadline, however slowly the bytes arrive."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.deadline = time.monotonic()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what has arrived; raises `TimeoutError` after the deadline."""
        seconds = self.deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        self.connection.settimeout(seconds)
        try:
            return self.connection.recv_into(buffer)
        finally:
            self.connection.settimeout(REQUEST_SECONDS)


class Handler(BaseHTTPRequestHandler):
    """Reads requests in time, and refuses those of other hosts or of two meanings."""

    protocol_version = "HTTP/1.1"
    server_version = "unalike"
    sys_version = ""
    disable_nagle_algorithm: ClassVar[bool] = True
    server: Server
    route: str
    """The path of the request, without its query."""
    body_size: int
    """Bytes of the body of the request."""

    def setup(self) -> None:
        """Read the connection by deadlines."""
        super().setup()
        self.rfile.close()
        self.reader = DeadlineReader(self.connection)
        self.rfile = io.BufferedReader(self.reader)

    def handle_one_request(self) -> None:
        self.reader.deadline = time.monotonic() + REQUEST_SECONDS
        super().handle_one_request()

    def parse_request(self) -> bool:
        """Read the first line and the headers; False after an error was sent.

        A proxy in front must find the end of a body where it is found here.
        """
        if not super().parse_request():
            return False
        lengths = self.headers.get_all("Content-Length", ["0"])
        hosts = self.headers.get_all("Host", [""])
        try:
            self.route = urlsplit(self.path).path
            self.body_size = int(lengths[0]) if lengths[0].isdecimal() else -1
        except ValueError:
            self.send_error(HTTPStatus.BAD_REQUEST)
        else:
            if "Transfer-Encoding" in self.headers:
                self.send_error(HTTPStatus.LENGTH_REQUIRED)
            elif len(lengths) > 1 or len(hosts) > 1 or self.body_size < 0:
                self.send_error(HTTPStatus.BAD_REQUEST)
            elif self.body_size and self.command != "POST":
                self.send_error(HTTPStatus.BAD_REQUEST, "Only POST has a body.")
            elif not is_allowed_host(hosts[0], self.server.allowed_hosts):
                self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            else:
                return True
        return False

    def log_message(self, format: str, *arguments: Any) -> None:
        """Log nothing."""


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


def is_allowed_host(header: str, names: Collection[str]) -> bool:
    """Is a Host header one of a server's names or an IP address?

    Another site can let its own name point at this machine (DNS rebinding), but the
    Host header then holds that name.
    """
    try:
        name = urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return False
    return name in names or is_ip_address(name)
