"""Parse MediaWiki API responses: pages, redirects, links, continuation, site info."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from unalike.wiki.api_client import ApiClient
from unalike.wiki.collection import MAIN_NAMESPACE

MAX_INTEGER = 1 << 50
"""Bound of ids and counts, so that their sums fit into 64 bits."""

LINK_PARAMS = {"pllimit": "max", "plnamespace": "0"}
EXTENSION_PARAMS = {
    "extracts": {"exintro": "1", "explaintext": "1", "exlimit": "max"},
    "pageviews": {"pvipdays": "60"},
}
"""Request parameters of the properties that extensions add."""
MISSING_EXTENSION_NOTES = {
    "extracts": "the wiki has no TextExtracts; intros stay empty.",
    "pageviews": "the wiki has no PageViewInfo; pages stay without views and labels.",
}
GENERAL_PARAMS = {"action": "query", "meta": "siteinfo", "siprop": "general|rightsinfo"}
MODULE_PARAMS = {
    "action": "paraminfo",
    "modules": "|".join(f"query+{module}" for module in EXTENSION_PARAMS),
}


class TitleStatus(IntEnum):
    """What a title is: article, redirect or neither."""

    PAGE = 0
    REDIRECT = 1
    """A redirect to an article."""
    MISSING = 2
    UNRESOLVED = 3
    """A redirect in a cycle, to a missing page or to another wiki."""


@dataclass(frozen=True)
class PagePart:
    """Part of an article; the rest is in other responses to the same batch."""

    page_id: int
    title: str
    links: list[str]
    intro: str | None
    views: dict[str, int | None]
    """Views of each of the last sixty days; None where unknown."""

    @property
    def total_views(self) -> int | None:
        known = [count for count in self.views.values() if count is not None]
        return _number(sum(known)) if known else None

    @property
    def has_content(self) -> bool:
        return bool(self.links or self.intro is not None or self.views)


@dataclass(frozen=True)
class QueryResponse:
    """Parts of articles, the status of each title, and the parameters to continue."""

    parts: list[PagePart]
    statuses: dict[str, tuple[TitleStatus, int | None]]
    continuation: dict[str, str] | None


def parse_query(document: Mapping[str, Any], titles: Sequence[str]) -> QueryResponse:
    """Parse the response to a query; raises an error if it is incomplete."""
    query = document["query"]
    pages = {_text(page["title"]): page for page in query.get("pages", [])}
    steps = {
        kind: {_text(step["from"]): _text(step["to"]) for step in query.get(kind, [])}
        for kind in ("normalized", "redirects")
    }
    further = document.get("continue") or {}
    return QueryResponse(
        [_part(page) for page in pages.values() if _is_article(page)],
        {title: _status(title, pages, **steps) for title in titles},
        {str(name): str(value) for name, value in further.items()} or None,
    )


def normalized_title(document: Mapping[str, Any]) -> str | None:
    """Return the normalized form of the requested title, if the wiki changed it."""
    steps = document["query"].get("normalized", [])
    return _text(steps[0]["to"]) if steps else None


def _status(
    title: str,
    pages: Mapping[str, Any],
    normalized: Mapping[str, str],
    redirects: Mapping[str, str],
) -> tuple[TitleStatus, int | None]:
    title = normalized.get(title, title)
    visited: set[str] = set()
    while title in redirects and title not in visited:
        visited.add(title)
        title = redirects[title]
    page = pages.get(title, {})
    if _is_article(page):
        status = TitleStatus.REDIRECT if visited else TitleStatus.PAGE
        return status, _number(page["pageid"])
    if page.get("missing") and not visited:
        return TitleStatus.MISSING, None
    return TitleStatus.UNRESOLVED, None


def _is_article(page: Mapping[str, Any]) -> bool:
    return page.get("ns") == MAIN_NAMESPACE and "pageid" in page


def _part(page: Mapping[str, Any]) -> PagePart:
    intro = page.get("extract")
    links = (link for link in page.get("links", []) if link["ns"] == MAIN_NAMESPACE)
    views = (page.get("pageviews") or {}).items()
    part = PagePart(
        _number(page["pageid"]),
        _text(page["title"]),
        [_text(link["title"]) for link in links],
        None if intro is None else _text(intro),
        {_text(day): None if count is None else _number(count) for day, count in views},
    )
    # Raises if the views of all days are too many.
    _ = part.total_views
    return part


def _text(value: Any) -> str:
    """Return a string, or raise an error if it cannot be encoded as UTF-8."""
    if not isinstance(value, str):
        raise TypeError(value)
    value.encode("utf-8")
    return value


def _number(value: Any) -> int:
    """Return a count or an id, or raise an error if it is out of range."""
    number = int(value)
    if not 0 <= number < MAX_INTEGER:
        raise ValueError(value)
    return number


@dataclass(frozen=True)
class SiteInfo:
    """Name, software, licence and available page properties of a wiki."""

    name: str
    software: str
    language: str
    licence: str
    licence_address: str
    extras: list[str]
    """Page properties of extensions that the wiki has."""

    def page_params(self) -> dict[str, str]:
        params = {"action": "query", "redirects": "1", **LINK_PARAMS}
        for prop in self.extras:
            params |= EXTENSION_PARAMS[prop]
        return {**params, "prop": "|".join(["links", *self.extras])}

    def notes(self) -> Iterator[str]:
        """Yield a note for each missing extension."""
        for prop, note in MISSING_EXTENSION_NOTES.items():
            if prop not in self.extras:
                yield note


def fetch_site_info(api: ApiClient) -> SiteInfo:
    """Request the site info of a wiki."""
    props = api.query(MODULE_PARAMS, _parse_modules)
    return SiteInfo(**api.query(GENERAL_PARAMS, _parse_general), extras=props)


def _parse_modules(document: Mapping[str, Any]) -> list[str]:
    names = {module["name"] for module in document["paraminfo"]["modules"]}
    return [prop for prop in EXTENSION_PARAMS if prop in names]


def _parse_general(document: Mapping[str, Any]) -> dict[str, str]:
    query = document["query"]
    general, rights = query["general"], query.get("rightsinfo", {})
    return {
        "name": _text(general["sitename"]),
        "software": _text(general["generator"]),
        "language": _text(general.get("lang", "")),
        "licence": _text(rights.get("text") or "not stated by the wiki"),
        "licence_address": _text(rights.get("url") or ""),
    }
