"""Pages: the articles and redirects of a wiki, from the table `page`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from unalike.errors import UserError
from unalike.progress import Progress
from unalike.wiki.dumps.files import DumpFiles
from unalike.wiki.dumps.sql import Rows, SqlTable
from unalike.wiki.dumps.titles import Titles, save_titles
from unalike.wiki.dumps.work import Stage

ARTICLES = 0
"""The namespace of articles and of redirects between them."""
LARGEST = 2**30
"""Ids index arrays; one above this is damage, and would ask for all memory."""


@dataclass(frozen=True, eq=False)
class Pages:
    """Page ids by number: first all articles, then all redirects, both ascending."""

    ids: np.ndarray
    num_articles: int

    @classmethod
    def load(cls, stage: Stage) -> Pages:
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


def read_pages(files: DumpFiles, stage: Stage, progress: Progress) -> None:
    """Number the titles in the namespace of articles, and keep what the table tells."""
    table = SqlTable.open(files.tables["page"], "page")
    wanted = ["page_id", "page_namespace", "page_is_redirect"]
    progress.stage("Reading pages", table.megabytes, "MB")
    titles, ids, redirects = Titles(), [np.empty(0, np.int64)], [np.empty(0, bool)]
    for rows in table.rows(wanted, text="page_title"):
        numbers, names = in_namespace(rows, 1)
        ids.append(numbers[:, 0])
        redirects.append(numbers[:, 2] != 0)
        titles.add(names)
        progress.advance(rows.read / 1e6, f"{len(titles):,} titles")
    every, leading = np.concatenate(ids), np.concatenate(redirects)
    _check(every, leading, titles, table)
    order = np.lexsort((every, leading))
    save_titles(stage, titles.names().take(pa.array(order)))
    stage.save(ids=every[order], num_articles=np.array((~leading).sum()))


def in_namespace(rows: Rows, column: int) -> tuple[np.ndarray, pa.Array]:
    """The numbers and texts of rows whose namespace is that of articles."""
    kept = rows.numbers[:, column] == ARTICLES
    if kept.all():
        return rows.numbers, rows.text
    return rows.numbers[kept], rows.text.filter(pa.array(kept))


def _check(
    ids: np.ndarray, redirects: np.ndarray, titles: Titles, table: SqlTable
) -> None:
    if redirects.all():
        raise UserError(f"{table.path} has no article.")
    if ids.min() < 0 or ids.max() > LARGEST:
        raise UserError(f"{table.path} is damaged: it has ids beyond {LARGEST:,}.")
    if len(titles) != len(ids) or (np.diff(np.sort(ids)) == 0).any():
        raise UserError(f"{table.path} is damaged: it has a page twice.")
