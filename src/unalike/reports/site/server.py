"""HTTP server of the live results page."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from http import HTTPStatus
from mimetypes import guess_type
from threading import Lock

from sqlalchemy.exc import DatabaseError

from unalike.experiments.leases import count_active
from unalike.files import json_hash
from unalike.http_server import Handler, Server
from unalike.progress import NO_PROGRESS, Progress
from unalike.reports.site.documents import Document, as_script
from unalike.reports.site.site_data import SiteData, change_tokens
from unalike.reports.site.writer import chart_assets, static_assets

STATE = "data/state.json"
"""What the page polls."""


@dataclass(eq=False)
class LiveSite:
    """Answers the requests of a page from the present content of the database."""

    site_data: SiteData
    datasets: Document | None = None
    _lock: Lock = field(default_factory=Lock, init=False)
    _version: str = field(default="", init=False)
    _site: Document = field(default_factory=dict, init=False)

    @cached_property
    def static_files(self) -> dict[str, bytes]:
        """The page, its style, its scripts, and the measures of datasets."""
        files = static_assets()
        if self.datasets is not None:
            files["data/datasets.js"] = as_script("datasets", self.datasets).encode()
        return files

    @cached_property
    def chart_files(self) -> dict[str, bytes]:
        return chart_assets()

    def get(self, path: str) -> bytes | None:
        """The file of a path, if the page has one."""
        if path in self.static_files:
            return self.static_files[path]
        with self._lock:
            if path in self.chart_files:
                return self.chart_files[path]
            self.refresh()
            if path == STATE:
                return json.dumps(self.state()).encode()
            name = path.removeprefix("data/").removesuffix(".js")
            if name == "site":
                return as_script("site", self._site).encode()
            pair = self.site_data.method_run_ids().get(name)
            if pair is None:
                return None
            document = self.site_data.method_runs_document(pair)
            return as_script(name, document).encode()

    def state(self) -> Document:
        """The token that changes with the results, and the number of active runs."""
        running = count_active(self.site_data.results.engine)
        return {"token": self._version, "running": running, "runs": self._site["runs"]}

    def refresh(self, progress: Progress = NO_PROGRESS) -> None:
        """Read the database again, if it has changed."""
        tokens = change_tokens(self.site_data.results)
        now = json_hash({" ".join(pair): token for pair, token in tokens.items()})
        if now != self._version:
            live = {"has_datasets": self.datasets is not None, "live_token": now}
            self._site = {**self.site_data.site_document(progress), **live}
            self._version = now


HEADERS = {
    "Cache-Control": "no-cache",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Other sites can neither read this page nor show it in a frame."""


class ReportServer(Server):
    """Serves a page to requests whose Host header is allowed."""

    def __init__(self, live: LiveSite, host: str, port: int) -> None:
        self.live = live
        super().__init__(host, port, ReportHandler, [socket.gethostname().lower()])


class ReportHandler(Handler):
    """Answers one request for a file of the page."""

    server: ReportServer

    def do_GET(self) -> None:
        """Send a file of the page, or 304 where it has not changed."""
        path = self.route.removeprefix("/") or "index.html"
        try:
            body = self.server.live.get(path)
        except DatabaseError:
            self.send_error(HTTPStatus.SERVICE_UNAVAILABLE)
            return
        if body is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        etag = f'"{sha256(body).hexdigest()}"'
        if self.headers.get("If-None-Match") == etag:
            self.send_response(HTTPStatus.NOT_MODIFIED)
            body = b""
        else:
            self.send_response(HTTPStatus.OK)
        headers = {
            "Content-Type": f"{guess_type(path)[0] or 'text/plain'}; charset=utf-8",
            "ETag": etag,
            **HEADERS,
            "Content-Length": str(len(body)),
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
