"""Links: from articles to titles, from the table `pagelinks` in its old or new form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from unalike.draft import Draft
from unalike.errors import UserError
from unalike.importing.edges import Spill
from unalike.importing.placing import place_rows
from unalike.progress import Progress
from unalike.wiki.dumps.files import DumpFiles
from unalike.wiki.dumps.numbers import look_up, pair_up
from unalike.wiki.dumps.pages import ARTICLES, Pages
from unalike.wiki.dumps.sql import Rows, SqlTable
from unalike.wiki.dumps.titles import Titles, load_titles, save_titles
from unalike.wiki.dumps.work import Stage

PAIRS = "pairs"


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
class Ends:
    """The source's page id and the number of the title for each of some rows."""

    sources: np.ndarray
    targets: np.ndarray
    read: int


def ends_by_id(table: SqlTable, targets: Stage) -> Iterator[Ends]:
    """The ends of links whose targets are told by id."""
    numbers = targets.load("numbers")
    for rows in table.rows(["pl_from", "pl_target_id"]):
        found = look_up(numbers, rows.numbers[:, 1])
        yield Ends(rows.numbers[:, 0], found, rows.read)


def ends_by_title(table: SqlTable, titles: Titles, missing: Titles) -> Iterator[Ends]:
    """The ends of links whose targets are told by title; collects what is missing."""
    wanted = ["pl_from", "pl_namespace"]
    for rows in table.rows(wanted, text="pl_title"):
        yield _by_title(rows, titles, missing)


def _by_title(rows: Rows, titles: Titles, missing: Titles) -> Ends:
    found = titles.find(rows.text)
    new = (found < 0) & (rows.numbers[:, 1] == ARTICLES)
    (places,) = new.nonzero()
    found[places] = len(titles) + missing.add(rows.text.take(places))
    found[rows.numbers[:, 1] != ARTICLES] = -1
    return Ends(rows.numbers[:, 0], found, rows.read)


def read_links(
    table: SqlTable,
    known: Stage,
    targets: Stage | None,
    stage: Stage,
    progress: Progress,
) -> None:
    """Write the pairs of an article and a title it links, as the table has them."""
    progress.stage("Reading links", table.megabytes, "MB")
    pages = Pages.load(known)
    by_id = pages.numbers_by_id(articles_only=True)
    missing = Titles()
    if targets is None:
        ends = ends_by_title(table, Titles.of(load_titles(known)), missing)
    else:
        ends = ends_by_id(table, targets)
    spill = Spill(stage.path(PAIRS), mirrored=False)
    with spill.path.open("wb") as file:
        for some in ends:
            pairs = pair_up(look_up(by_id, some.sources), some.targets)
            file.write(pairs.data)
            spill.count(pairs, int(pairs.max(initial=0)) + 1)
            progress.advance(some.read / 1e6, f"{spill.num_pairs:,} links")
    if targets is None:
        save_titles(stage, missing.names())
    stage.save(entries=spill.entries, num_pairs=np.array(spill.num_pairs))


def place_links(
    links: Stage, num_titles: int, stage: Stage, progress: Progress
) -> None:
    """Sort the pairs into rows without repeats, one row for each article."""
    entries = np.zeros(num_titles, np.int64)
    counted = links.load("entries")[:num_titles]
    entries[: len(counted)] = counted
    spill = Spill(links.path(PAIRS), mirrored=False, entries=entries)
    spill.num_pairs = int(links.load("num_pairs"))
    rank = np.arange(num_titles, dtype=np.int32)
    place_rows(spill, rank, Draft(stage.folder, stage.folder), progress)
