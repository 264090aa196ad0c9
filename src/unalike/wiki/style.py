"""Style: how titles and intros are taken apart into words."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

WORD = re.compile(r"[^\W_]+")
BRACES = re.compile(r"\s*\{.*\}\s*")


@dataclass(frozen=True)
class Style:
    """Words of a text, and what becomes of those that have no vector."""

    about: str
    clean: Callable[[str], str]
    """What is done to an intro first."""
    words: Callable[[str], list[str]]
    counts_unknown: bool
    """Does a word without a vector count as zeros, or not at all?"""


def as_it_is(text: str) -> str:
    """The same text."""
    return text


def plain_words(text: str) -> list[str]:
    """Lower-case words of letters and digits."""
    return WORD.findall(text.lower())


def paper_clean(text: str) -> str:
    """The paper's way: words join over line ends, all from { to the last } is lost."""
    return BRACES.sub("", text.replace("    ", "").replace("\n", ""))


STYLES = {
    "plain": Style(
        "lower case, no punctuation, the mean of the words that have a vector",
        as_it_is,
        plain_words,
        counts_unknown=False,
    ),
    "paper": Style(
        "split at white space only, words without a vector count as zeros",
        paper_clean,
        str.split,
        counts_unknown=True,
    ),
}
