"""Page, redirect, linktarget, pagelinks tables: titles to ids, redirects resolved, links to CSR."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unalike.data.numba_utils import njit
from unalike.data.store import GraphWriter
from unalike.errors import UserError
from unalike.importing.csr import EdgeSpill, build_csr
from unalike.importing.ids import StringBuffer, StringIndex, grow
from unalike.parallel import even_slices, parallel_map
from unalike.progress import Progress
from unalike.wiki.dumps.files import DumpFiles, StageOutput
from unalike.wiki.dumps.sql import SqlRows, SqlTable

# Titles: the names of a wiki's pages as its tables spell them, and their numbers.


class TitleIndex:
    """An index from titles to numbers from 0 on, in the order they were added."""

    def __init__(self) -> None:
        self.keys = StringIndex()

    def __len__(self) -> int:
        return self.keys.count

    @classmethod
    def of(cls, names: pa.Array) -> TitleIndex:
        """An index of these titles."""
        titles = cls()
        titles.add(names)
        return titles

    def names(self) -> pa.Array:
        """The titles in the order of their numbers."""
        return self.keys.names()

    def find(self, names: pa.Array) -> np.ndarray:
        """The number of each title, -1 where it is unknown."""
        return self._search(names)[0]

    def add(self, names: pa.Array) -> np.ndarray:
        """The number of each title; unknown ones get the next."""
        numbers, keys, num_new = self._search(names)
        if num_new:
            self.keys.add(keys, numbers, num_new)
        return numbers

    def _search(self, names: pa.Array) -> tuple[np.ndarray, Any, int]:
        keys = self.keys.read(names)
        numbers = np.empty(len(names), np.int32)
        new = parallel_map(
            lambda part: self.keys.find(keys, part, numbers[part]),
            even_slices(len(names)),
        )
        return numbers, keys, sum(new)


def save_titles(stage: StageOutput, names: pa.Array) -> None:
    """Keep titles with a stage's results."""
    words = StringBuffer.of(names)
    first, end = words.starts[0], words.starts[-1]
    stage.save(title_starts=words.starts - first, title_text=words.text[first:end])


def load_titles(stage: StageOutput) -> pa.Array:
    """The titles that were kept with a stage's results."""
    starts, text = stage.load("title_starts"), stage.load("title_text")
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.large_string(), len(starts) - 1, buffers)


def count_titles(stage: StageOutput) -> int:
    """How many titles were kept with a stage's results."""
    return len(stage.memmap("title_starts")) - 1


def display_titles(names: pa.Array) -> pa.Array:
    """Titles as people write them, with spaces; bytes that are no text are replaced."""
    try:
        names.validate(full=True)
    except pa.ArrowInvalid:
        told = names.cast(pa.large_binary()).to_pylist()
        names = pa.array([one.decode("utf-8", "replace") for one in told])
    return pc.replace_substring(names.cast(pa.large_string()), "_", " ")


# Pages: the articles and redirects of a wiki, from the table `page`.


MAIN_NAMESPACE = 0
"""The namespace of articles and of redirects between them."""
MAX_ID = 2**30
"""Ids index arrays; one above this is damage, and would ask for all memory."""


@dataclass(frozen=True, eq=False)
class PageIds:
    """Page ids by number: first all articles, then all redirects, both ascending."""

    ids: np.ndarray
    num_articles: int

    @classmethod
    def load(cls, stage: StageOutput) -> PageIds:
        return cls(stage.load("ids"), int(stage.load("num_articles")))

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def article_ids(self) -> np.ndarray:
        return self.ids[: self.num_articles]

    def numbers_by_id(self, *, articles_only: bool) -> np.ndarray:
        """The number of each page id from 0 to the largest, -1 where there is none."""
        ids = self.article_ids if articles_only else self.ids
        table = np.full(int(ids.max()) + 1, -1, np.int32)
        table[ids] = np.arange(len(ids), dtype=np.int32)
        return table


def read_pages(files: DumpFiles, stage: StageOutput, progress: Progress) -> None:
    """Number the titles in the namespace of articles, and keep what the table tells."""
    table = SqlTable.open(files.tables["page"], "page")
    wanted = ["page_id", "page_namespace", "page_is_redirect"]
    progress.stage("Reading pages", table.megabytes, "MB")
    titles, ids, redirects = TitleIndex(), [np.empty(0, np.int64)], [np.empty(0, bool)]
    for rows in table.rows(wanted, text="page_title"):
        numbers, names = main_namespace_rows(rows, 1)
        ids.append(numbers[:, 0])
        redirects.append(numbers[:, 2] != 0)
        titles.add(names)
        progress.advance(rows.read / 1e6, f"{len(titles):,} titles")
    every, leading = np.concatenate(ids), np.concatenate(redirects)
    _check(every, leading, titles, table)
    order = np.lexsort((every, leading))
    save_titles(stage, titles.names().take(pa.array(order)))
    stage.save(ids=every[order], num_articles=np.array((~leading).sum()))


def main_namespace_rows(rows: SqlRows, column: int) -> tuple[np.ndarray, pa.Array]:
    """The numbers and texts of rows whose namespace is that of articles."""
    kept = rows.numbers[:, column] == MAIN_NAMESPACE
    if kept.all():
        return rows.numbers, rows.text
    return rows.numbers[kept], rows.text.filter(pa.array(kept))


def _check(
    ids: np.ndarray, redirects: np.ndarray, titles: TitleIndex, table: SqlTable
) -> None:
    if redirects.all():
        raise UserError(f"{table.path} has no article.")
    if ids.min() < 0 or ids.max() > MAX_ID:
        raise UserError(f"{table.path} is damaged: it has ids beyond {MAX_ID:,}.")
    if len(titles) != len(ids) or (np.diff(np.sort(ids)) == 0).any():
        raise UserError(f"{table.path} is damaged: it has a page twice.")


# Targets: what the ids of the table `linktarget` stand for.


def read_targets(
    files: DumpFiles, known: StageOutput, stage: StageOutput, progress: Progress
) -> None:
    """Find the number of each target's title; those that do not exist get the next.

    Targets outside the namespace of articles have none.
    """
    table = SqlTable.open(files.tables["linktarget"], "linktarget")
    progress.stage("Reading targets", table.megabytes, "MB")
    titles = TitleIndex.of(load_titles(known))
    # A table of numbers plus 1, since room that is added is zero.
    numbers = np.zeros(1 << 10, np.int32)
    missing = [pa.array([], pa.large_string())]
    count = len(titles)
    for rows in table.rows(["lt_id", "lt_namespace"], text="lt_title"):
        kept, names = main_namespace_rows(rows, 1)
        found, ids = titles.find(names), kept[:, 0]
        new = found < 0
        found[new] = np.arange(count, count + new.sum())
        missing.append(names.filter(pa.array(new)))
        count += int(new.sum())
        numbers = grow(numbers, _largest(ids, table) + 1)
        numbers[ids] = found + 1
        progress.advance(rows.read / 1e6, f"{count - len(titles):,} missing")
    save_titles(stage, pa.concat_arrays(missing))
    numbers -= 1
    stage.save(numbers=numbers)


def _largest(ids: np.ndarray, table: SqlTable) -> int:
    largest = int(ids.max(initial=0))
    if ids.min(initial=0) < 0 or largest > MAX_ID:
        raise UserError(f"{table.path} is damaged: it has ids beyond {MAX_ID:,}.")
    return largest


# Numbers: compiled look-ups from the ids of tables to numbers without gaps.


@njit()
def take_or_missing(table: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """The entry of each id, -1 for those beyond the table."""
    found = np.empty(len(ids), np.int32)
    for i in range(len(ids)):
        inside = 0 <= ids[i] < len(table)
        found[i] = table[ids[i]] if inside else -1
    return found


@njit()
def valid_pairs(sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The pairs of which both ends are known."""
    pairs = np.empty((len(sources), 2), np.int32)
    count = 0
    for i in range(len(sources)):
        if sources[i] >= 0 and targets[i] >= 0:
            pairs[count, 0] = sources[i]
            pairs[count, 1] = targets[i]
            count += 1
    return pairs[:count]


# Redirects: the article that every title leads to, over any number of steps.


UNRESOLVED, UNKNOWN, IN_PROGRESS = -1, -2, -3


def read_redirects(
    files: DumpFiles, known: StageOutput, stage: StageOutput, progress: Progress
) -> None:
    """Find the article that each page leads to, or NOWHERE; articles are their own.

    A redirect leads nowhere if it ends in another namespace, on another wiki, at a page
    that does not exist, or in a circle.
    """
    table = SqlTable.open(files.tables["redirect"], "redirect")
    wanted = ["rd_from", "rd_namespace"]
    progress.stage("Reading redirects", table.megabytes, "MB")
    pages, titles = PageIds.load(known), TitleIndex.of(load_titles(known))
    by_id = pages.numbers_by_id(articles_only=False)
    following = np.full(len(pages), UNRESOLVED, np.int32)
    for rows in table.rows(wanted, text="rd_title", length="rd_interwiki"):
        numbers, names = main_namespace_rows(rows, 1)
        sources = take_or_missing(by_id, numbers[:, 0])
        found = np.where(numbers[:, 2] == 0, titles.find(names), UNRESOLVED)
        following[sources[sources >= 0]] = found[sources >= 0]
        progress.advance(rows.read / 1e6)
    leads = np.full(len(pages), UNKNOWN, np.int32)
    leads[: pages.num_articles] = np.arange(pages.num_articles, dtype=np.int32)
    resolve_redirects(following, leads)
    stage.save(leads=leads)


@njit()
def resolve_redirects(following: np.ndarray, leads: np.ndarray) -> None:
    """Walk from every unknown page to what is known, and tell all on the way."""
    for page in range(len(leads)):
        at = page
        while at >= 0 and leads[at] == UNKNOWN:
            leads[at] = IN_PROGRESS
            at = following[at]
        # Whoever meets its own steps walks in a circle.
        end = UNRESOLVED if at < 0 or leads[at] == IN_PROGRESS else leads[at]
        at = page
        while at >= 0 and leads[at] == IN_PROGRESS:
            leads[at] = end
            at = following[at]


# Links: from articles to titles, from the table `pagelinks` in its old or new form.


PAIRS_FILE = "pairs"


def open_links(files: DumpFiles) -> tuple[SqlTable, bool]:
    """The table, and whether it names its targets by the ids of `linktarget`."""
    table = SqlTable.open(files.tables["pagelinks"], "pagelinks")
    # While wikis changed from one form to the other, titles were the ones to trust.
    by_id = "pl_title" not in table.columns
    if by_id and "linktarget" not in files.tables:
        raise UserError(
            f"{table.path} needs the table linktarget (*-linktarget.sql.gz) beside it."
        )
    return table, by_id


@dataclass(frozen=True, eq=False)
class LinkBatch:
    """The source's page id and the number of the title for each of some rows."""

    sources: np.ndarray
    targets: np.ndarray
    read: int


def links_by_id(table: SqlTable, targets: StageOutput) -> Iterator[LinkBatch]:
    """The ends of links whose targets are told by id."""
    numbers = targets.load("numbers")
    for rows in table.rows(["pl_from", "pl_target_id"]):
        found = take_or_missing(numbers, rows.numbers[:, 1])
        yield LinkBatch(rows.numbers[:, 0], found, rows.read)


def links_by_title(
    table: SqlTable, titles: TitleIndex, missing: TitleIndex
) -> Iterator[LinkBatch]:
    """The ends of links whose targets are told by title; collects what is missing."""
    wanted = ["pl_from", "pl_namespace"]
    for rows in table.rows(wanted, text="pl_title"):
        yield _by_title(rows, titles, missing)


def _by_title(rows: SqlRows, titles: TitleIndex, missing: TitleIndex) -> LinkBatch:
    found = titles.find(rows.text)
    new = (found < 0) & (rows.numbers[:, 1] == MAIN_NAMESPACE)
    (places,) = new.nonzero()
    found[places] = len(titles) + missing.add(rows.text.take(places))
    found[rows.numbers[:, 1] != MAIN_NAMESPACE] = -1
    return LinkBatch(rows.numbers[:, 0], found, rows.read)


def read_links(
    table: SqlTable,
    known: StageOutput,
    targets: StageOutput | None,
    stage: StageOutput,
    progress: Progress,
) -> None:
    """Write the pairs of an article and a title it links, as the table has them."""
    progress.stage("Reading links", table.megabytes, "MB")
    pages = PageIds.load(known)
    by_id = pages.numbers_by_id(articles_only=True)
    missing = TitleIndex()
    if targets is None:
        ends = links_by_title(table, TitleIndex.of(load_titles(known)), missing)
    else:
        ends = links_by_id(table, targets)
    spill = EdgeSpill(stage.path(PAIRS_FILE), undirected=False)
    with spill.path.open("wb") as file:
        for some in ends:
            pairs = valid_pairs(take_or_missing(by_id, some.sources), some.targets)
            file.write(pairs.data)
            spill.count(pairs, int(pairs.max(initial=0)) + 1)
            progress.advance(some.read / 1e6, f"{spill.num_pairs:,} links")
    if targets is None:
        save_titles(stage, missing.names())
    stage.save(entries=spill.row_nnz, num_pairs=np.array(spill.num_pairs))


def build_link_csr(
    links: StageOutput, num_titles: int, stage: StageOutput, progress: Progress
) -> None:
    """Sort the pairs into rows without repeats, one row for each article."""
    entries = np.zeros(num_titles, np.int64)
    counted = links.load("entries")[:num_titles]
    entries[: len(counted)] = counted
    spill = EdgeSpill(links.path(PAIRS_FILE), undirected=False, row_nnz=entries)
    spill.num_pairs = int(links.load("num_pairs"))
    rank = np.arange(num_titles, dtype=np.int32)
    build_csr(spill, rank, GraphWriter(stage.folder, stage.folder), progress)
