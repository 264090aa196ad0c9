"""Redirects: the article that every title leads to, over any number of steps."""

from __future__ import annotations

import numpy as np

from unalike.kernels.compiled import compiled
from unalike.progress import Progress
from unalike.wiki.dumps.files import DumpFiles
from unalike.wiki.dumps.numbers import look_up
from unalike.wiki.dumps.pages import Pages, in_namespace
from unalike.wiki.dumps.sql import SqlTable
from unalike.wiki.dumps.titles import Titles, load_titles
from unalike.wiki.dumps.work import Stage

NOWHERE, UNKNOWN, WALKING = -1, -2, -3


def read_redirects(
    files: DumpFiles, known: Stage, stage: Stage, progress: Progress
) -> None:
    """Find the article that each page leads to, or NOWHERE; articles are their own.

    A redirect leads nowhere if it ends in another namespace, on another wiki, at a page
    that does not exist, or in a circle.
    """
    table = SqlTable.open(files.tables["redirect"], "redirect")
    wanted = ["rd_from", "rd_namespace"]
    progress.stage("Reading redirects", table.megabytes, "MB")
    pages, titles = Pages.load(known), Titles.of(load_titles(known))
    by_id = pages.numbers_by_id(articles_only=False)
    following = np.full(len(pages), NOWHERE, np.int32)
    for rows in table.rows(wanted, text="rd_title", length="rd_interwiki"):
        numbers, names = in_namespace(rows, 1)
        sources = look_up(by_id, numbers[:, 0])
        found = np.where(numbers[:, 2] == 0, titles.find(names), NOWHERE)
        following[sources[sources >= 0]] = found[sources >= 0]
        progress.advance(rows.read / 1e6)
    leads = np.full(len(pages), UNKNOWN, np.int32)
    leads[: pages.num_articles] = np.arange(pages.num_articles, dtype=np.int32)
    follow(following, leads)
    stage.save(leads=leads)


@compiled()
def follow(following: np.ndarray, leads: np.ndarray) -> None:
    """Walk from every unknown page to what is known, and tell all on the way."""
    for page in range(len(leads)):
        at = page
        while at >= 0 and leads[at] == UNKNOWN:
            leads[at] = WALKING
            at = following[at]
        # Whoever meets its own steps walks in a circle.
        end = NOWHERE if at < 0 or leads[at] == WALKING else leads[at]
        at = page
        while at >= 0 and leads[at] == WALKING:
            leads[at] = end
            at = following[at]
