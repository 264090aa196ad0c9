"""Ball: the articles around one of them, in the order in which a crawl meets them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unalike.errors import UserError, did_you_mean
from unalike.kernels.compiled import compiled
from unalike.kernels.sorting import sort_run
from unalike.wiki.dumps.titles import readable


def number_of(start: str, names: pa.Array) -> int:
    """The number of a title; wikis begin titles with a capital letter."""
    spelled = start.strip().replace(" ", "_")
    for spelling in (spelled, spelled[:1].upper() + spelled[1:]):
        number = pc.index(names, pa.scalar(spelling, names.type)).as_py()
        if number >= 0:
            return number
    begin = pc.starts_with(names, spelled[:1].upper() + spelled[1:3])
    near = [name.replace("_", " ") for name in names.filter(begin)[:1000].to_pylist()]
    raise UserError(f"There is no page '{start}'.{did_you_mean(start, near)}")


def alphabet(names: pa.Array) -> np.ndarray:
    """The numbers of titles in the order of their bytes as people write them."""
    return pc.array_sort_indices(readable(names)).to_numpy().astype(np.int32)


def ball(
    start: int,
    most: int,
    rows: tuple[np.ndarray, np.ndarray],
    leads: np.ndarray,
    names: pa.Array,
) -> np.ndarray:
    """Which articles are among the first that a crawl meets?

    Titles wait in a queue, from the start on. A title that leads to a new article
    lengthens the queue by the titles it is the first to link, in alphabetical order.
    """
    order = alphabet(names)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    reached = np.zeros(len(rows[0]) - 1, np.bool_)
    walk(start, most, *rows, leads, order, rank, reached)
    return reached


@compiled()
def walk(
    start: int,
    most: int,
    starts: np.ndarray,
    columns: np.ndarray,
    leads: np.ndarray,
    order: np.ndarray,
    rank: np.ndarray,
    reached: np.ndarray,
) -> None:
    """Mark the articles that are met first."""
    queue = np.empty(len(rank), np.int32)
    placed = np.zeros(len(rank), np.bool_)
    queue[0], placed[start] = start, True
    head, tail, count = 0, 1, 0
    while head < tail and count < most:
        title = queue[head]
        head += 1
        article = leads[title] if title < len(leads) else -1
        if article < 0 or reached[article]:
            continue
        reached[article] = True
        count += 1
        ranks = rank[columns[starts[article] : starts[article + 1]]]
        sort_run(ranks, ranks[:0], 0, len(ranks))
        for place in ranks:
            if not placed[order[place]]:
                placed[order[place]] = True
                queue[tail] = order[place]
                tail += 1
