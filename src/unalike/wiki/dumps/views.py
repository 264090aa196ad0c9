"""Views: how often each article was looked at, from the files of page views."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from unalike.importing.threads import ahead
from unalike.kernels.compiled import compiled
from unalike.progress import Progress
from unalike.wiki.dumps.codes import codes_of
from unalike.wiki.dumps.files import DumpFiles
from unalike.wiki.dumps.lines import read_lines
from unalike.wiki.dumps.pages import Pages
from unalike.wiki.dumps.titles import Titles, load_titles
from unalike.wiki.dumps.unpacking import Block, unpacked
from unalike.wiki.dumps.work import Stage, Work

NONE = -1
"""The views of an article that no file names."""
SHORTEST = 8
"""Bytes of a line: four fields of a letter, each with what ends it."""


@dataclass(frozen=True, eq=False)
class Counts:
    """Titles and counts of some lines."""

    titles: pa.Array
    counts: np.ndarray
    damaged: int
    """Lines of the wiki that could not be read."""
    read: int


def read_views(
    files: DumpFiles, work: Work, known: Stage, progress: Progress
) -> Stage | None:
    """Add up the views of all files; a stage holds the sum so far."""
    reader = ViewReader(files.wiki, known, progress)
    names = [f"views-{number:05}" for number in range(len(files.views))]
    finished = [number for number, name in enumerate(names) if work.has(name)]
    newest = max(finished, default=-1)
    total = Stage(work.folder / names[newest]) if finished else None
    for number in range(newest + 1, len(names)):
        add = partial(reader.add, files.views[number], total)
        longer = work.stage(names[number], add)
        if total:
            total.discard()
        total = longer
    return total


@dataclass(frozen=True)
class ViewReader:
    """What a file of views is read with."""

    wiki: str
    known: Stage
    progress: Progress

    @cached_property
    def pages(self) -> Pages:
        return Pages.load(self.known)

    @cached_property
    def titles(self) -> Titles:
        return Titles.of(load_titles(self.known))

    def add(self, path: Path, before: Stage | None, stage: Stage) -> None:
        """The views of one file, added to those before."""
        views = np.full(self.pages.num_articles, NONE)
        damaged = 0
        if before:
            views, damaged = before.load("views"), int(before.load("damaged"))
        size = path.stat().st_size / 1e6
        self.progress.stage(f"Reading {path.name}", size, "MB")
        for some in read_counts(path, codes_of(self.wiki)):
            add_views(self.titles.find(some.titles), some.counts, views)
            damaged += some.damaged
            self.progress.advance(some.read / 1e6)
        stage.save(views=views, damaged=np.array(damaged))


def read_counts(path: Path, codes: list[str]) -> Iterator[Counts]:
    """The lines of the wiki with one of these codes."""
    marks = [f"{code} ".encode() for code in codes]
    ends = np.cumsum([len(mark) for mark in marks])
    wanted = np.frombuffer(b"".join(marks), np.uint8)
    rest = b""
    for block in chain(ahead(unpacked(path)), [Block(b"\n", 0)]):
        content = np.frombuffer(rest + block.content, np.uint8)
        most = len(content) // SHORTEST + 1
        counts, starts = np.empty(most, np.int64), np.zeros(most + 1, np.int64)
        text = np.empty(len(content), np.uint8)
        end, num_rows, damaged = read_lines(content, wanted, ends, counts, starts, text)
        rest = content[end:].tobytes()
        buffers = [None, pa.py_buffer(starts), pa.py_buffer(text)]
        titles = pa.Array.from_buffers(pa.large_string(), num_rows, buffers)
        yield Counts(titles, counts[:num_rows], damaged, block.read)


@compiled()
def add_views(numbers: np.ndarray, counts: np.ndarray, views: np.ndarray) -> None:
    """Add counts to articles; a redirect's views are its own, as the wiki counts."""
    for i in range(len(numbers)):
        if 0 <= numbers[i] < len(views):
            views[numbers[i]] = max(views[numbers[i]], 0) + counts[i]
