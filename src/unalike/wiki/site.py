"""Site: what a wiki says of itself before it is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from unalike.wiki.api import Api

LINKS = {"pllimit": "max", "plnamespace": "0"}
EXTRAS = {
    "extracts": {"exintro": "1", "explaintext": "1", "exlimit": "max"},
    "pageviews": {"pvipdays": "60"},
}
"""What extensions tell of an article, and how they are asked."""
LACKS = {
    "extracts": "the wiki has no TextExtracts; intros stay empty.",
    "pageviews": "the wiki has no PageViewInfo; pages stay without views and labels.",
}
GENERAL = {"action": "query", "meta": "siteinfo", "siprop": "general|rightsinfo"}
MODULES = {
    "action": "paraminfo",
    "modules": "|".join(f"query+{module}" for module in EXTRAS),
}


@dataclass(frozen=True)
class Site:
    """A wiki: its name, its software, its licence, and what it can tell of articles."""

    name: str
    software: str
    language: str
    licence: str
    licence_address: str
    extras: list[str]

    def question(self) -> dict[str, str]:
        """What is asked to read articles."""
        question = {"action": "query", "redirects": "1", **LINKS}
        for extra in self.extras:
            question |= EXTRAS[extra]
        return {**question, "prop": "|".join(["links", *self.extras])}

    def remarks(self) -> Iterator[str]:
        """What users should know of it."""
        for extra, lack in LACKS.items():
            if extra not in self.extras:
                yield lack


def look_at(api: Api) -> Site:
    """Ask a wiki about itself."""
    extras = api.ask(MODULES, _modules)
    return Site(**api.ask(GENERAL, _general), extras=extras)


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
