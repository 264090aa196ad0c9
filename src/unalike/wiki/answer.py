"""Answer: what one reply of a wiki tells of the titles it was asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

ARTICLES = 0
"""The namespace of articles."""
LARGEST = 1 << 50


class Fate(IntEnum):
    """What a title turned out to be."""

    PAGE = 0
    ALIAS = 1
    """A redirect to an article."""
    MISSING = 2
    ELSEWHERE = 3
    """A redirect that leads to no article: in a circle, nowhere or out of the wiki."""


@dataclass(frozen=True)
class Part:
    """A part of an article; the rest is in other answers of the same batch."""

    page_id: int
    title: str
    links: list[str]
    intro: str | None
    views: dict[str, int | None]
    """Views on each day of the last sixty; None where the wiki does not know."""

    @property
    def total_views(self) -> int | None:
        known = [count for count in self.views.values() if count is not None]
        return sum(known) if known else None


@dataclass(frozen=True)
class Answer:
    """Parts of articles, the fate of each title, and how to ask for what is left."""

    parts: list[Part]
    fates: dict[str, tuple[Fate, int | None]]
    onward: dict[str, str] | None


def read_answer(told: Mapping[str, Any], titles: Sequence[str]) -> Answer:
    """Read the JSON of an answer; whatever has the wrong form raises."""
    query = told["query"]
    pages = {_text(page["title"]): page for page in query.get("pages", [])}
    steps = {
        kind: {_text(step["from"]): _text(step["to"]) for step in query.get(kind, [])}
        for kind in ("normalized", "redirects")
    }
    onward = told.get("continue")
    return Answer(
        [_part(page) for page in pages.values() if _is_article(page)],
        {title: _fate(title, pages, **steps) for title in titles},
        {str(name): str(value) for name, value in onward.items()} if onward else None,
    )


def normal_title(told: Mapping[str, Any]) -> str | None:
    """How the wiki itself writes the one title it was asked for, if it does so."""
    steps = told["query"].get("normalized", [])
    return _text(steps[0]["to"]) if steps else None


def _fate(
    title: str,
    pages: Mapping[str, Any],
    normalized: Mapping[str, str],
    redirects: Mapping[str, str],
) -> tuple[Fate, int | None]:
    title = normalized.get(title, title)
    met: set[str] = set()
    while title in redirects and title not in met:
        met.add(title)
        title = redirects[title]
    page = pages.get(title, {})
    if _is_article(page):
        return Fate.ALIAS if met else Fate.PAGE, _number(page["pageid"])
    if page.get("missing") and not met:
        return Fate.MISSING, None
    return Fate.ELSEWHERE, None


def _is_article(page: Mapping[str, Any]) -> bool:
    return page.get("ns") == ARTICLES and "pageid" in page


def _part(page: Mapping[str, Any]) -> Part:
    intro = page.get("extract")
    links = (link for link in page.get("links", []) if link["ns"] == ARTICLES)
    views = (page.get("pageviews") or {}).items()
    return Part(
        _number(page["pageid"]),
        _text(page["title"]),
        [_text(link["title"]) for link in links],
        None if intro is None else _text(intro),
        {_text(day): None if count is None else _number(count) for day, count in views},
    )


def _text(value: Any) -> str:
    """A string that can be written as UTF-8."""
    if not isinstance(value, str):
        raise TypeError(value)
    value.encode("utf-8")
    return value


def _number(value: Any) -> int:
    """A count or an id, small enough for sums of them to be written down."""
    number = int(value)
    if not 0 <= number < LARGEST:
        raise ValueError(value)
    return number
