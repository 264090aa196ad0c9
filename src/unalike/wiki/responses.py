"""Parse `action=query` and siteinfo responses: pages, redirects, links, continuation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from unalike.wiki.api_client import ApiClient

# Answer: what one reply of a wiki tells of the titles it was asked for.


MAIN_NAMESPACE = 0
"""The namespace of articles."""
MAX_INTEGER = 1 << 50


class TitleStatus(IntEnum):
    """What a title turned out to be."""

    PAGE = 0
    REDIRECT = 1
    """A redirect to an article."""
    MISSING = 2
    UNRESOLVED = 3
    """A redirect that leads to no article: in a circle, nowhere or out of the wiki."""


@dataclass(frozen=True)
class PagePart:
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
class QueryResponse:
    """Parts of articles, the fate of each title, and how to ask for what is left."""

    parts: list[PagePart]
    fates: dict[str, tuple[TitleStatus, int | None]]
    continuation: dict[str, str] | None


def read_answer(told: Mapping[str, Any], titles: Sequence[str]) -> QueryResponse:
    """Read the JSON of an answer; whatever has the wrong form raises."""
    query = told["query"]
    pages = {_text(page["title"]): page for page in query.get("pages", [])}
    steps = {
        kind: {_text(step["from"]): _text(step["to"]) for step in query.get(kind, [])}
        for kind in ("normalized", "redirects")
    }
    onward = told.get("continue")
    return QueryResponse(
        [_part(page) for page in pages.values() if _is_article(page)],
        {title: _fate(title, pages, **steps) for title in titles},
        {str(name): str(value) for name, value in onward.items()} if onward else None,
    )


def normalized_title(told: Mapping[str, Any]) -> str | None:
    """How the wiki itself writes the one title it was asked for, if it does so."""
    steps = told["query"].get("normalized", [])
    return _text(steps[0]["to"]) if steps else None


def _fate(
    title: str,
    pages: Mapping[str, Any],
    normalized: Mapping[str, str],
    redirects: Mapping[str, str],
) -> tuple[TitleStatus, int | None]:
    title = normalized.get(title, title)
    met: set[str] = set()
    while title in redirects and title not in met:
        met.add(title)
        title = redirects[title]
    page = pages.get(title, {})
    if _is_article(page):
        return TitleStatus.REDIRECT if met else TitleStatus.PAGE, _number(
            page["pageid"]
        )
    if page.get("missing") and not met:
        return TitleStatus.MISSING, None
    return TitleStatus.UNRESOLVED, None


def _is_article(page: Mapping[str, Any]) -> bool:
    return page.get("ns") == MAIN_NAMESPACE and "pageid" in page


def _part(page: Mapping[str, Any]) -> PagePart:
    intro = page.get("extract")
    links = (link for link in page.get("links", []) if link["ns"] == MAIN_NAMESPACE)
    views = (page.get("pageviews") or {}).items()
    return PagePart(
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
    if not 0 <= number < MAX_INTEGER:
        raise ValueError(value)
    return number


# Site: what a wiki says of itself before it is read.


LINKS = {"pllimit": "max", "plnamespace": "0"}
EXTRAS = {
    "extracts": {"exintro": "1", "explaintext": "1", "exlimit": "max"},
    "pageviews": {"pvipdays": "60"},
}
"""What extensions tell of an article, and how they are asked."""
MISSING_EXTENSION_NOTES = {
    "extracts": "the wiki has no TextExtracts; intros stay empty.",
    "pageviews": "the wiki has no PageViewInfo; pages stay without views and labels.",
}
GENERAL = {"action": "query", "meta": "siteinfo", "siprop": "general|rightsinfo"}
MODULES = {
    "action": "paraminfo",
    "modules": "|".join(f"query+{module}" for module in EXTRAS),
}


@dataclass(frozen=True)
class SiteInfo:
    """A wiki: its name, its software, its licence, and what it can tell of articles."""

    name: str
    software: str
    language: str
    licence: str
    licence_address: str
    props: list[str]

    def page_params(self) -> dict[str, str]:
        """What is asked to read articles."""
        question = {"action": "query", "redirects": "1", **LINKS}
        for extra in self.props:
            question |= EXTRAS[extra]
        return {**question, "prop": "|".join(["links", *self.props])}

    def notes(self) -> Iterator[str]:
        """What users should know of it."""
        for extra, lack in MISSING_EXTENSION_NOTES.items():
            if extra not in self.props:
                yield lack


def fetch_site_info(api: ApiClient) -> SiteInfo:
    """Ask a wiki about itself."""
    extras = api.query(MODULES, _modules)
    return SiteInfo(**api.query(GENERAL, _general), props=extras)


def _modules(told: Mapping[str, Any]) -> list[str]:
    found = {module["name"] for module in told["paraminfo"]["modules"]}
    return [extra for extra in EXTRAS if extra in found]


def _general(told: Mapping[str, Any]) -> dict[str, str]:
    general, rights = told["query"]["general"], told["query"].get("rightsinfo", {})
    return {
        "name": str(general["sitename"]),
        "software": str(general["generator"]),
        "language": str(general.get("lang", "")),
        "licence": str(rights.get("text") or "not stated by the wiki"),
        "licence_address": str(rights.get("url") or ""),
    }
