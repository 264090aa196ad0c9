"""Sum page views per article from pageview files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from unalike.data.numba_utils import njit
from unalike.errors import UserError
from unalike.parallel import prefetch
from unalike.progress import Progress
from unalike.wiki.dumps.files import (
    Block,
    DumpFiles,
    StageCache,
    StageOutput,
    decompressed_blocks,
)
from unalike.wiki.dumps.pages import PageIds, TitleIndex, load_titles

# Lines: the compiled loops that read one wiki's lines of a file of page views.
#
# A line has the wiki, the title, and further fields of which the last but one is the
# count: `en.wikipedia Title page_id device count hours` or `en Title count bytes`.


_NEWLINE, _BLANK, _ZERO, _NINE = 10, 32, ord("0"), ord("9")
MIN_BLANKS = 3
"""Blanks in a line."""


@njit()
def end_of_line(block: np.ndarray, at: int) -> int:
    """The next newline, or the end of the block."""
    while at < len(block) and block[at] != _NEWLINE:
        at += 1
    return at


@njit()
def match_domain(line: np.ndarray, codes: np.ndarray, ends: np.ndarray) -> int:
    """Where the title begins, if the line has one of these codes; 0 otherwise.

    Codes stand one after the other, each with a blank.
    """
    first = 0
    for code in range(len(ends)):
        length = ends[code] - first
        if np.array_equal(line[:length], codes[first : ends[code]]):
            return length
        first = ends[code]
    return 0


@njit()
def read_count(line: np.ndarray) -> int:
    """The last but one of at least four fields as a number, -1 if it is none."""
    blanks, last, before = 0, 0, 0
    for at in range(len(line)):
        if line[at] == _BLANK:
            blanks, last, before = blanks + 1, at, last
    count = 0
    for at in range(before + 1, last):
        if not _ZERO <= line[at] <= _NINE:
            return -1
        count = count * 10 + (line[at] - _ZERO)
    return count if blanks >= MIN_BLANKS and last > before + 1 else -1


@njit()
def read_lines(
    block: np.ndarray,
    codes: np.ndarray,
    ends: np.ndarray,
    counts: np.ndarray,
    starts: np.ndarray,
    text: np.ndarray,
) -> tuple[int, int, int]:
    """Read whole lines: where the last ends, how many are kept and how many damaged."""
    at, rows, length, damaged = 0, 0, 0, 0
    while True:
        end = end_of_line(block, at)
        if end == len(block):
            return at, rows, damaged
        line = block[at:end]
        at = end + 1
        first = match_domain(line, codes, ends)
        if not first:
            continue
        count = read_count(line)
        if count < 0:
            damaged += 1
            continue
        while line[first] != _BLANK:
            text[length] = line[first]
            length, first = length + 1, first + 1
        counts[rows] = count
        rows += 1
        starts[rows] = length


# Codes: what files of page views call a wiki that dumps know by another name.


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


def domain_codes(wiki: str) -> list[str]:
    """The codes of a wiki: by the day or month, then by the hour on each device."""
    ends = [end for end in PROJECTS if wiki.endswith(end) and wiki != end]
    if not ends:
        known = ", ".join(f"*{end}" for end in PROJECTS)
        raise UserError(f"No views are known for a wiki called {wiki}, only {known}.")
    project, mark = PROJECTS[ends[0]]
    language = wiki.removesuffix(ends[0]).replace("_", "-")
    return [f"{language}.{project}", f"{language}{mark}", f"{language}.m{mark}"]


# Views: how often each article was looked at, from the files of page views.


NO_VIEWS = -1
"""The views of an article that no file names."""
MIN_LINE_BYTES = 8
"""Bytes of a line: four fields of a letter, each with what ends it."""


@dataclass(frozen=True, eq=False)
class ViewCounts:
    """Titles and counts of some lines."""

    titles: pa.Array
    counts: np.ndarray
    damaged: int
    """Lines of the wiki that could not be read."""
    read: int


def read_views(
    files: DumpFiles, work: StageCache, known: StageOutput, progress: Progress
) -> StageOutput | None:
    """Add up the views of all files; a stage holds the sum so far."""
    reader = ViewReader(files.wiki, known, progress)
    names = [f"views-{number:05}" for number in range(len(files.views))]
    finished = [number for number, name in enumerate(names) if work.has(name)]
    newest = max(finished, default=-1)
    total = StageOutput(work.folder / names[newest]) if finished else None
    for number in range(newest + 1, len(names)):
        add = partial(reader.add, files.views[number], total)
        longer = work.get_or_run(names[number], add)
        if total:
            total.discard()
        total = longer
    return total


@dataclass(frozen=True)
class ViewReader:
    """What a file of views is read with."""

    wiki: str
    known: StageOutput
    progress: Progress

    @cached_property
    def pages(self) -> PageIds:
        return PageIds.load(self.known)

    @cached_property
    def titles(self) -> TitleIndex:
        return TitleIndex.of(load_titles(self.known))

    def add(self, path: Path, before: StageOutput | None, stage: StageOutput) -> None:
        """The views of one file, added to those before."""
        views = np.full(self.pages.num_articles, NO_VIEWS)
        damaged = 0
        if before:
            views, damaged = before.load("views"), int(before.load("damaged"))
        size = path.stat().st_size / 1e6
        self.progress.stage(f"Reading {path.name}", size, "MB")
        for some in read_counts(path, domain_codes(self.wiki)):
            add_views(self.titles.find(some.titles), some.counts, views)
            damaged += some.damaged
            self.progress.advance(some.read / 1e6)
        stage.save(views=views, damaged=np.array(damaged))


def read_counts(path: Path, codes: list[str]) -> Iterator[ViewCounts]:
    """The lines of the wiki with one of these codes."""
    marks = [f"{code} ".encode() for code in codes]
    ends = np.cumsum([len(mark) for mark in marks])
    wanted = np.frombuffer(b"".join(marks), np.uint8)
    rest = b""
    for block in chain(prefetch(decompressed_blocks(path)), [Block(b"\n", 0)]):
        content = np.frombuffer(rest + block.content, np.uint8)
        most = len(content) // MIN_LINE_BYTES + 1
        counts, starts = np.empty(most, np.int64), np.zeros(most + 1, np.int64)
        text = np.empty(len(content), np.uint8)
        end, num_rows, damaged = read_lines(content, wanted, ends, counts, starts, text)
        rest = content[end:].tobytes()
        buffers = [None, pa.py_buffer(starts), pa.py_buffer(text)]
        titles = pa.Array.from_buffers(pa.large_string(), num_rows, buffers)
        yield ViewCounts(titles, counts[:num_rows], damaged, block.read)


@njit()
def add_views(numbers: np.ndarray, counts: np.ndarray, views: np.ndarray) -> None:
    """Add counts to articles; a redirect's views are its own, as the wiki counts."""
    for i in range(len(numbers)):
        if 0 <= numbers[i] < len(views):
            views[numbers[i]] = max(views[numbers[i]], 0) + counts[i]
