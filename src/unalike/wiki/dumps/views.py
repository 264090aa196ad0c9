"""Sum the page views of each article over pageview files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple, no_type_check

import numpy as np
import pyarrow as pa

from unalike.data.numba_utils import njit
from unalike.data.store import string_array
from unalike.errors import UserError
from unalike.importing.ids import StringIndex
from unalike.parallel import prefetch
from unalike.progress import Progress
from unalike.wiki.dumps.files import (
    Block,
    DumpFiles,
    StageCache,
    StageOutput,
    decompressed_blocks,
)
from unalike.wiki.dumps.pages import load_titles

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
"""Suffix of a dump's name: project, and its code in hourly files."""


def domain_codes(wiki: str) -> list[str]:
    """Return the codes of a wiki in daily and monthly files, then in hourly files."""
    for suffix, (project, code) in PROJECTS.items():
        language = wiki.removesuffix(suffix).replace("_", "-")
        if wiki.endswith(suffix) and language:
            return [f"{language}.{project}", f"{language}{code}", f"{language}.m{code}"]
    known = ", ".join(f"*{suffix}" for suffix in PROJECTS)
    raise UserError(f"No views are known for a wiki called {wiki}, only {known}.")


NO_VIEWS = -1
"""Views of an article that is in no file."""
MAX_LINE_BYTES = 1 << 20
MIN_LINE_BYTES = 8
"""Minimum bytes of a line: four fields of one byte, each with a delimiter."""


class ViewCounts(NamedTuple):
    """Titles and counts of a batch of lines."""

    titles: pa.Array
    counts: np.ndarray
    damaged: int
    """Lines of the wiki that could not be parsed."""


def read_views(
    files: DumpFiles, cache: StageCache, known: StageOutput, progress: Progress
) -> StageOutput | None:
    """Sum the views of all files; each stage stores the sum so far."""
    names = [f"views-{number:05}" for number in range(len(files.views))]
    finished = [number for number, name in enumerate(names) if cache.has(name)]
    newest = max(finished, default=-1)
    total = StageOutput(cache.folder / names[newest]) if finished else None
    titles = StringIndex()
    for number in range(newest + 1, len(names)):
        if not len(titles):
            titles.add(load_titles(known))
        counts = read_counts(files.views[number], domain_codes(files.wiki), progress)
        add = partial(_add_counts, counts, titles, known, total)
        new_total = cache.get_or_run(names[number], add)
        if total:
            shutil.rmtree(total.folder)
        total = new_total
    return total


def _add_counts(
    batches: Iterator[ViewCounts],
    titles: StringIndex,
    known: StageOutput,
    before: StageOutput | None,
    stage: StageOutput,
) -> None:
    """Add the views of one file to those of the stage before."""
    views, damaged = np.full(int(known.load("num_articles")), NO_VIEWS), 0
    if before:
        views, damaged = before.load("views"), int(before.load("damaged"))
    for batch in batches:
        add_views(titles.find(batch.titles), batch.counts, views)
        damaged += batch.damaged
    stage.save(views=views, damaged=np.array(damaged))


def read_counts(
    path: Path, codes: list[str], progress: Progress
) -> Iterator[ViewCounts]:
    """Read the lines of the wiki with one of these codes."""
    progress.stage(f"Reading {path.name}", path.stat().st_size / 1e6, "MB")
    prefixes = [f"{code} ".encode() for code in codes]
    ends = np.cumsum([len(prefix) for prefix in prefixes])
    joined = np.frombuffer(b"".join(prefixes), np.uint8)
    leftover = b""
    for block in chain(prefetch(decompressed_blocks(path)), [Block(b"\n", 0)]):
        content = np.frombuffer(leftover + block.content, np.uint8)
        max_rows = len(content) // MIN_LINE_BYTES + 1
        counts, offsets = np.empty(max_rows, np.int64), np.zeros(max_rows + 1, np.int64)
        data = np.empty(len(content), np.uint8)
        end, num_rows, damaged = read_lines(
            content, joined, ends, counts, offsets, data
        )
        leftover = content[end:].tobytes()
        if len(leftover) > MAX_LINE_BYTES:
            raise UserError(
                f"{path} is damaged: a line has more than {MAX_LINE_BYTES:,} bytes."
            )
        titles = string_array(offsets[: num_rows + 1], data)
        yield ViewCounts(titles, counts[:num_rows], damaged)
        progress.advance(block.bytes_read / 1e6)


# Compiled loops that parse page view lines of one wiki.
#
# A line has the wiki, the title, and further fields of which the last but one is the
# count: `en.wikipedia Title page_id device count hours` or `en Title count bytes`.

_NEWLINE, _BLANK, _ZERO, _NINE = 10, 32, ord("0"), ord("9")
MIN_BLANKS = 3
"""Minimum number of blanks in a line."""


@njit()
@no_type_check
def end_of_line(block, pos):
    """Return the position of the next newline, or the end of the block."""
    while pos < len(block) and block[pos] != _NEWLINE:
        pos += 1
    return pos


@njit()
@no_type_check
def match_domain(line, codes, ends):
    """Return the start of the title, if the line has one of these codes, else 0."""
    first = 0
    for code in range(len(ends)):
        length = ends[code] - first
        if np.array_equal(line[:length], codes[first : ends[code]]):
            return length
        first = ends[code]
    return 0


@njit()
@no_type_check
def read_count(line):
    """Parse the last but one of at least four fields, -1 if it is no number.

    It is -1 for an empty field too, so that a line has at least `MIN_LINE_BYTES`.
    """
    blanks, last, before = 0, -1, -1
    for pos in range(len(line)):
        if line[pos] == _BLANK:
            if pos == last + 1:
                return -1
            blanks, last, before = blanks + 1, pos, last
    count = 0
    for pos in range(before + 1, last):
        if not _ZERO <= line[pos] <= _NINE:
            return -1
        count = count * 10 + (line[pos] - _ZERO)
    return count if blanks >= MIN_BLANKS and last < len(line) - 1 else -1


@njit()
@no_type_check
def read_lines(block, codes, ends, counts, offsets, data):
    """Parse all complete lines; returns position, rows and damaged lines."""
    pos, rows, length, damaged = 0, 0, 0, 0
    while True:
        end = end_of_line(block, pos)
        if end == len(block) or rows == len(counts):
            return pos, rows, damaged
        line = block[pos:end]
        pos = end + 1
        first = match_domain(line, codes, ends)
        if not first:
            continue
        count = read_count(line)
        if count < 0:
            damaged += 1
            continue
        while line[first] != _BLANK:
            data[length] = line[first]
            length, first = length + 1, first + 1
        counts[rows] = count
        rows += 1
        offsets[rows] = length


@njit()
@no_type_check
def add_views(indices, counts, views):
    """Add counts to articles; views of redirects are left out, as in the API."""
    for i in range(len(indices)):
        if 0 <= indices[i] < len(views):
            views[indices[i]] = max(views[indices[i]], 0) + counts[i]
