"""HTTP server of the live results page."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from mimetypes import guess_type
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy.exc import DatabaseError

from unalike.errors import UserError
from unalike.experiments.config import json_hash
from unalike.experiments.leases import count_active
from unalike.progress import NO_PROGRESS, Progress
from unalike.reports.site.documents import Document, as_script
from unalike.reports.site.site_data import SiteData, change_tokens
from unalike.reports.site.writer import assets

# Live: the site over a database that somebody fills at the moment.


STATE = "data/state.json"
"""What the page asks for again and again."""


@dataclass(frozen=True)
class Response:
    """A file of the site: what it is, its bytes, and a tag that changes with them."""

    kind: str
    body: bytes
    tag: str


@dataclass(eq=False)
class LiveSite:
    """Answers what a page asks for, from what is in the database by then."""

    survey: SiteData
    measures: Document | None = None
    _lock: Lock = field(default_factory=Lock, init=False)
    _seen: str = field(default="", init=False)
    _site: Document = field(default_factory=dict, init=False)

    @cached_property
    def fixed(self) -> dict[str, Response]:
        """What does not change: the assets, and the measures."""
        found = {path: to_response(path, one.read_bytes()) for path, one in assets()}
        if self.measures is not None:
            found["data/measures.js"] = script_response("measures", self.measures)
        return found

    def answer(self, path: str) -> Response | None:
        """The file of a path, if the site has one."""
        if path in self.fixed:
            return self.fixed[path]
        with self._lock:
            self.refresh()
            if path == STATE:
                return to_response(path, json.dumps(self.state()).encode())
            name = path.removeprefix("data/").removesuffix(".js")
            if name == "site":
                return script_response("site", self._site)
            pair = self.survey.shelves().get(name)
            return script_response(name, self.survey.shelf(pair)) if pair else None

    def state(self) -> Document:
        """What tells a page whether it is out of date."""
        running = count_active(self.survey.results.engine)
        return {"seen": self._seen, "running": running, "runs": self._site["runs"]}

    def refresh(self, progress: Progress = NO_PROGRESS) -> None:
        """Look through the database again, if it has changed."""
        now = change_tokens(self.survey.results)
        seen = json_hash({" ".join(pair): stamp for pair, stamp in now.items()})
        if seen != self._seen:
            shown = {"measured": self.measures is not None, "live": seen}
            self._site = {**self.survey.look(progress), **shown}
            self._seen = seen


def script_response(name: str, document: Document) -> Response:
    """A document as a file."""
    return to_response(f"{name}.js", as_script(name, document).encode())


def to_response(path: str, body: bytes) -> Response:
    """Bytes as a file of the kind that its name tells."""
    kind = guess_type(path)[0] or "text/plain"
    return Response(f"{kind}; charset=utf-8", body, f'"{sha256(body).hexdigest()}"')


# Serve: the site on an address of this machine, while a sweep runs.


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

    def __init__(self, host: str, port: int, live: LiveSite) -> None:
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
        return name in self.names or is_ip_address(name)


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


def make_server(live: LiveSite, host: str, port: int) -> Server:
    """A server that is ready to serve."""
    try:
        return Server(host, port, live)
    except (OSError, OverflowError) as error:
        raise UserError(f"Nothing can be served at {host}:{port}: {error}.") from None


def is_loopback(host: str) -> bool:
    """Can only this machine reach an address?"""
    return host == "localhost" or (is_ip_address(host) and ip_address(host).is_loopback)


def is_ip_address(host: str) -> bool:
    """Is a host told by its number rather than a name?"""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
