"""Codes: what files of page views call a wiki that dumps know by another name."""

from __future__ import annotations

from unalike.errors import UserError

PROJECTS = {
    "wiki": ("wikipedia", ""),
    "wiktionary": ("wiktionary", ".d"),
    "wikibooks": ("wikibooks", ".b"),
    "wikinews": ("wikinews", ".n"),
    "wikiquote": ("wikiquote", ".q"),
    "wikisource": ("wikisource", ".s"),
    "wikiversity": ("wikiversity", ".v"),
    "wikivoyage": ("wikivoyage", ".voy"),
}
"""The end of a dump's name: the project, and the mark of it in files by the hour."""


def codes_of(wiki: str) -> list[str]:
    """The codes of a wiki: by the day or month, then by the hour on each device."""
    ends = [end for end in PROJECTS if wiki.endswith(end) and wiki != end]
    if not ends:
        known = ", ".join(f"*{end}" for end in PROJECTS)
        raise UserError(f"No views are known for a wiki called {wiki}, only {known}.")
    project, mark = PROJECTS[ends[0]]
    language = wiki.removesuffix(ends[0]).replace("_", "-")
    return [f"{language}.{project}", f"{language}{mark}", f"{language}.m{mark}"]
