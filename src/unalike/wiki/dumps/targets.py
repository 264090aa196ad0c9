"""Targets: what the ids of the table `linktarget` stand for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from unalike.errors import UserError
from unalike.importing.keys import grown
from unalike.progress import Progress
from unalike.wiki.dumps.files import DumpFiles
from unalike.wiki.dumps.pages import LARGEST, in_namespace
from unalike.wiki.dumps.sql import SqlTable
from unalike.wiki.dumps.titles import Titles, load_titles, save_titles
from unalike.wiki.dumps.work import Stage


def read_targets(
    files: DumpFiles, known: Stage, stage: Stage, progress: Progress
) -> None:
    """Find the number of each target's title; those that do not exist get the next.

    Targets outside the namespace of articles have none.
    """
    table = SqlTable.open(files.tables["linktarget"], "linktarget")
    progress.stage("Reading targets", table.megabytes, "MB")
    titles = Titles.of(load_titles(known))
    # A table of numbers plus 1, since room that is added is zero.
    numbers = np.zeros(1 << 10, np.int32)
    missing = [pa.array([], pa.large_string())]
    count = len(titles)
    for rows in table.rows(["lt_id", "lt_namespace"], text="lt_title"):
        kept, names = in_namespace(rows, 1)
        found, ids = titles.find(names), kept[:, 0]
        new = found < 0
        found[new] = np.arange(count, count + new.sum())
        missing.append(names.filter(pa.array(new)))
        count += int(new.sum())
        numbers = grown(numbers, _largest(ids, table) + 1)
        numbers[ids] = found + 1
        progress.advance(rows.read / 1e6, f"{count - len(titles):,} missing")
    save_titles(stage, pa.concat_arrays(missing))
    numbers -= 1
    stage.save(numbers=numbers)


def _largest(ids: np.ndarray, table: SqlTable) -> int:
    largest = int(ids.max(initial=0))
    if ids.min(initial=0) < 0 or largest > LARGEST:
        raise UserError(f"{table.path} is damaged: it has ids beyond {LARGEST:,}.")
    return largest
