"""Read the page, redirect, linktarget and pagelinks tables of a wiki dump."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unalike.data.numba_utils import njit
from unalike.data.store import GraphWriter, string_array, string_buffers
from unalike.errors import UserError
from unalike.importing.csr import EdgeSpill, build_csr
from unalike.importing.ids import StringIndex, grow
from unalike.progress import Progress
from unalike.wiki.collection import MAIN_NAMESPACE
from unalike.wiki.dumps.files import DumpFiles, StageOutput
from unalike.wiki.dumps.sql import SqlRows, SqlTable

MAX_ID = 2**30
"""Ids index arrays; a larger one is damage, and would need too much memory."""
PAIRS_FILE = "pairs"
UNRESOLVED, UNKNOWN, IN_PROGRESS = -1, -2, -3
"""States of a redirect: leads to no article, not resolved yet, being resolved."""


def save_titles(stage: StageOutput, names: pa.Array) -> None:
    """Save titles to the output of a stage."""
    offsets, data = string_buffers(names)
    stage.save(title_starts=offsets, title_text=data)


def load_titles(stage: StageOutput) -> pa.Array:
    """Load the titles in the output of a stage."""
    return string_array(stage.load("title_starts"), stage.load("title_text"))


def count_titles(stage: StageOutput) -> int:
    """Return the number of titles in the output of a stage."""
    return len(stage.memmap("title_starts")) - 1


def display_titles(names: pa.Array) -> pa.Array:
    """Convert titles to display form, with spaces; invalid UTF-8 is replaced."""
    try:
        names.validate(full=True)
    except pa.ArrowInvalid:
        raw = names.cast(pa.large_binary()).to_pylist()
        names = pa.array([name.decode("utf-8", "replace") for name in raw])
    return pc.replace_substring(names.cast(pa.large_string()), "_", " ")


# Table `page`: articles and redirects.


def index_by_id(ids: np.ndarray) -> np.ndarray:
    """Return the page index of each page id from 0 to the largest, -1 for none."""
    table = np.full(int(ids.max()) + 1, -1, np.int32)
    table[ids] = np.arange(len(ids), dtype=np.int32)
    return table


def read_pages(files: DumpFiles, stage: StageOutput, progress: Progress) -> None:
    """Read titles and ids of all articles, then of all redirects, by ascending id."""
    table = SqlTable.open(files.tables["page"], "page")
    wanted = ["page_id", "page_namespace", "page_is_redirect"]
    progress.stage("Reading pages", table.megabytes, "MB")
    titles, parts = StringIndex(), [np.empty((0, 3), np.int64)]
    for rows in table.rows(wanted, text="page_title"):
        numbers, names = main_namespace_rows(rows)
        parts.append(numbers)
        titles.add(names)
        progress.advance(rows.bytes_read / 1e6, f"{len(titles):,} titles")
    ids, _, redirects = np.concatenate(parts).T
    if redirects.all():
        raise UserError(f"{table.path} has no article.")
    _max_id(ids, table)
    if len(titles) != len(ids) or (np.diff(np.sort(ids)) == 0).any():
        raise UserError(f"{table.path} is damaged: it has a page twice.")
    order = np.lexsort((ids, redirects != 0))
    save_titles(stage, titles.names().take(pa.array(order)))
    stage.save(ids=ids[order], num_articles=np.array((redirects == 0).sum()))


def main_namespace_rows(rows: SqlRows) -> tuple[np.ndarray, pa.Array]:
    """Return numbers and texts of the main namespace, which is the second number."""
    mask = rows.numbers[:, 1] == MAIN_NAMESPACE
    if mask.all():
        return rows.numbers, rows.text
    return rows.numbers[mask], rows.text.filter(pa.array(mask))


# Table `linktarget`: the titles of target ids.


def read_targets(
    files: DumpFiles, known: StageOutput, stage: StageOutput, progress: Progress
) -> None:
    """Read the title index of each target id; missing titles get the next indices."""
    table = SqlTable.open(files.tables["linktarget"], "linktarget")
    progress.stage("Reading targets", table.megabytes, "MB")
    titles = StringIndex.of(load_titles(known))
    # Stored plus 1, since elements that `grow` adds are zero.
    index_by_id = np.zeros(1 << 10, np.int32)
    missing = [pa.array([], pa.large_string())]
    count = len(titles)
    for rows in table.rows(["lt_id", "lt_namespace"], text="lt_title"):
        numbers, names = main_namespace_rows(rows)
        indices, ids = titles.find(names), numbers[:, 0]
        new = indices < 0
        indices[new] = np.arange(count, count + new.sum())
        missing.append(names.filter(pa.array(new)))
        count += int(new.sum())
        index_by_id = grow(index_by_id, _max_id(ids, table) + 1)
        index_by_id[ids] = indices + 1
        progress.advance(rows.bytes_read / 1e6, f"{count - len(titles):,} missing")
    save_titles(stage, pa.concat_arrays(missing))
    index_by_id -= 1
    stage.save(numbers=index_by_id)


def _max_id(ids: np.ndarray, table: SqlTable) -> int:
    """Return the largest id, or raise an error if ids are out of range."""
    largest = int(ids.max(initial=0))
    if ids.min(initial=0) < 0 or largest > MAX_ID:
        raise UserError(f"{table.path} is damaged: it has ids beyond {MAX_ID:,}.")
    return largest


@njit()
@no_type_check
def take_or_missing(table, ids):
    """Return table[id] for each id, -1 for ids out of range."""
    values = np.empty(len(ids), np.int32)
    for i in range(len(ids)):
        inside = 0 <= ids[i] < len(table)
        values[i] = table[ids[i]] if inside else -1
    return values


@njit()
@no_type_check
def valid_pairs(sources, targets):
    """Return the (source, target) pairs without -1."""
    pairs = np.empty((len(sources), 2), np.int32)
    count = 0
    for i in range(len(sources)):
        if sources[i] >= 0 and targets[i] >= 0:
            pairs[count, 0] = sources[i]
            pairs[count, 1] = targets[i]
            count += 1
    return pairs[:count]


# Table `redirect`: the article of each page, over any number of redirects.


def read_redirects(
    files: DumpFiles, known: StageOutput, stage: StageOutput, progress: Progress
) -> None:
    """Resolve each page to its article, or to UNRESOLVED; articles are their own."""
    table = SqlTable.open(files.tables["redirect"], "redirect")
    wanted = ["rd_from", "rd_namespace"]
    progress.stage("Reading redirects", table.megabytes, "MB")
    by_id, titles = index_by_id(known.load("ids")), StringIndex.of(load_titles(known))
    num_articles = int(known.load("num_articles"))
    target = np.full(len(titles), UNRESOLVED, np.int32)
    for rows in table.rows(wanted, text="rd_title", length="rd_interwiki"):
        numbers, names = main_namespace_rows(rows)
        sources = take_or_missing(by_id, numbers[:, 0])
        targets = np.where(numbers[:, 2] == 0, titles.find(names), UNRESOLVED)
        target[sources[sources >= 0]] = targets[sources >= 0]
        progress.advance(rows.bytes_read / 1e6)
    article = np.full(len(titles), UNKNOWN, np.int32)
    article[:num_articles] = np.arange(num_articles, dtype=np.int32)
    resolve_redirects(target, article)
    stage.save(leads=article)


@njit()
@no_type_check
def resolve_redirects(target, article):
    """Follow redirects from every unknown page, and write the article of all passed."""
    for start in range(len(article)):
        page = start
        while page >= 0 and article[page] == UNKNOWN:
            article[page] = IN_PROGRESS
            page = target[page]
        # A page in progress closes a cycle.
        cycle = page < 0 or article[page] == IN_PROGRESS
        end = UNRESOLVED if cycle else article[page]
        page = start
        while page >= 0 and article[page] == IN_PROGRESS:
            article[page] = end
            page = target[page]


# Table `pagelinks`: links from articles to titles, in its old or new form.


def open_links(files: DumpFiles) -> tuple[SqlTable, bool]:
    """Open the table; also returns whether its targets are ids of `linktarget`."""
    table = SqlTable.open(files.tables["pagelinks"], "pagelinks")
    # Dumps from the time of the change have both; only their titles are complete.
    by_id = "pl_title" not in table.columns
    if by_id and "linktarget" not in files.tables:
        raise UserError(
            f"{table.path} needs the table linktarget (*-linktarget.sql.gz) next to it."
        )
    return table, by_id


def find_or_add(rows: SqlRows, titles: StringIndex, missing: StringIndex) -> np.ndarray:
    """Return the title index of linked titles; unknown ones are added to `missing`."""
    indices, is_main = titles.find(rows.text), rows.numbers[:, 1] == MAIN_NAMESPACE
    (new,) = ((indices < 0) & is_main).nonzero()
    indices[new] = len(titles) + missing.add(rows.text.take(new))
    indices[~is_main] = -1
    return indices


def read_links(
    table: SqlTable,
    known: StageOutput,
    targets: StageOutput | None,
    stage: StageOutput,
    progress: Progress,
) -> None:
    """Write (article, title) pairs of all links to a spill file."""
    progress.stage("Reading links", table.megabytes, "MB")
    by_id = index_by_id(known.load("ids")[: int(known.load("num_articles"))])
    titles, missing = StringIndex(), StringIndex()
    if targets is None:
        titles.add(load_titles(known))
        batches = table.rows(["pl_from", "pl_namespace"], text="pl_title")
    else:
        title_of = targets.load("numbers")
        batches = table.rows(["pl_from", "pl_target_id"])
    spill = EdgeSpill(stage.folder / PAIRS_FILE, undirected=False)
    with spill.path.open("wb") as file:
        for rows in batches:
            if targets is None:
                indices = find_or_add(rows, titles, missing)
            else:
                indices = take_or_missing(title_of, rows.numbers[:, 1])
            sources = take_or_missing(by_id, rows.numbers[:, 0])
            pairs = valid_pairs(sources, indices)
            file.write(pairs.data)
            spill.count(pairs, int(pairs.max(initial=0)) + 1)
            progress.advance(rows.bytes_read / 1e6, f"{spill.num_pairs:,} links")
    if targets is None:
        save_titles(stage, missing.names())
    stage.save(entries=spill.row_nnz, num_pairs=np.array(spill.num_pairs))


def build_link_csr(
    links: StageOutput, num_titles: int, stage: StageOutput, progress: Progress
) -> None:
    """Build the CSR matrix of links, one row for each article."""
    row_nnz = grow(links.load("entries")[:num_titles], num_titles)
    spill = EdgeSpill(
        links.folder / PAIRS_FILE,
        undirected=False,
        row_nnz=row_nnz,
        num_pairs=int(links.load("num_pairs")),
    )
    identity = np.arange(num_titles, dtype=np.int32)
    build_csr(spill, identity, GraphWriter(stage.folder, stage.folder), progress)
