"""HTTP servers of this machine: addresses, allowed Host headers, end by Ctrl-C."""

from __future__ import annotations

import socket
from collections.abc import Collection
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from unalike.errors import UserError

IDLE_SECONDS = 30.0
"""Seconds after which a connection without a request is closed."""


class Server(ThreadingHTTPServer):
    """A server that is bound to an address and knows its own names."""

    daemon_threads = True

    def __init__(
        self,
        host: str,
        port: int,
        handler: type[Handler],
        names: Collection[str] = (),
    ) -> None:
        self.allowed_hosts = {"localhost", host.lower(), *names}
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), handler)
        except (OSError, OverflowError) as error:
            raise UserError(
                f"Nothing can be served at {host}:{port}: {error}."
            ) from None

    @property
    def address(self) -> str:
        """The URL of the server."""
        host, port = self.server_address[:2]
        is_ipv6 = self.address_family == socket.AF_INET6
        return f"http://[{host!s}]:{port}/" if is_ipv6 else f"http://{host!s}:{port}/"

    def serve_until_interrupted(self) -> None:
        """Answer requests until Ctrl-C is pressed."""
        with suppress(KeyboardInterrupt):
            self.serve_forever(poll_interval=0.2)


class Handler(BaseHTTPRequestHandler):
    """Answers one request, and logs nothing."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version = "unalike"
    sys_version = ""
    timeout = IDLE_SECONDS

    @property
    def has_allowed_host(self) -> bool:
        """Is the Host header one of the server's names or an IP address?"""
        host = self.headers.get("Host", "")
        return is_allowed_host(host, self.server.allowed_hosts)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


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
