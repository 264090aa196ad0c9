"""Live: the site over a database that somebody fills at the moment."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from mimetypes import guess_type
from threading import Lock

from unalike.experiments.fingerprint import digest
from unalike.experiments.leases import num_held
from unalike.progress import SILENT, Progress
from unalike.site.cell import Document
from unalike.site.page import assets
from unalike.site.script import script
from unalike.site.stamps import stamps
from unalike.site.survey import Survey

STATE = "data/state.json"
"""What the page asks for again and again."""


@dataclass(frozen=True)
class Answer:
    """A file of the site: what it is, its bytes, and a tag that changes with them."""

    kind: str
    body: bytes
    tag: str


@dataclass(eq=False)
class Live:
    """Answers what a page asks for, from what is in the database by then."""

    survey: Survey
    measures: Document | None = None
    _lock: Lock = field(default_factory=Lock, init=False)
    _seen: str = field(default="", init=False)
    _site: Document = field(default_factory=dict, init=False)

    @cached_property
    def fixed(self) -> dict[str, Answer]:
        """What does not change: the assets, and the measures."""
        found = {path: as_answer(path, one.read_bytes()) for path, one in assets()}
        if self.measures is not None:
            found["data/measures.js"] = told("measures", self.measures)
        return found

    def answer(self, path: str) -> Answer | None:
        """The file of a path, if the site has one."""
        if path in self.fixed:
            return self.fixed[path]
        with self._lock:
            self.refresh()
            if path == STATE:
                return as_answer(path, json.dumps(self.state()).encode())
            name = path.removeprefix("data/").removesuffix(".js")
            if name == "site":
                return told("site", self._site)
            pair = self.survey.shelves().get(name)
            return told(name, self.survey.shelf(pair)) if pair else None

    def state(self) -> Document:
        """What tells a page whether it is out of date."""
        running = num_held(self.survey.results.engine)
        return {"seen": self._seen, "running": running, "runs": self._site["runs"]}

    def refresh(self, progress: Progress = SILENT) -> None:
        """Look through the database again, if it has changed."""
        now = stamps(self.survey.results)
        seen = digest({" ".join(pair): stamp for pair, stamp in now.items()})
        if seen != self._seen:
            shown = {"measured": self.measures is not None, "live": seen}
            self._site = {**self.survey.look(progress), **shown}
            self._seen = seen


def told(name: str, document: Document) -> Answer:
    """A document as a file."""
    return as_answer(f"{name}.js", script(name, document).encode())


def as_answer(path: str, body: bytes) -> Answer:
    """Bytes as a file of the kind that its name tells."""
    kind = guess_type(path)[0] or "text/plain"
    return Answer(f"{kind}; charset=utf-8", body, f'"{sha256(body).hexdigest()}"')
