"""Blocks of rows with about equally many edges, worked on side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Int

from unalike.progress import SILENT, Progress

Given = TypeVar("Given")
Made = TypeVar("Made")

EDGES = 4_000_000


def over_blocks(
    starts: Int[np.ndarray, " nodes_and_one"],
    work: Callable[[int, int], Made],
    *,
    progress: Progress = SILENT,
) -> Iterator[Made]:
    """What `work` makes of each block of rows, from a first to before a last, in order.

    The blocks do not depend on the number of threads, and so neither does any sum.
    """
    nodes, edges = len(starts) - 1, int(starts[-1])
    marks = np.searchsorted(starts, np.arange(EDGES, edges, EDGES))
    blocks = list(pairwise(np.unique([0, *marks, nodes]).tolist()))
    made = side_by_side(lambda block: work(*block), blocks)
    for (first, last), part in zip(blocks, made, strict=True):
        progress.advance(float(starts[last] - starts[first]))
        yield part


def side_by_side(
    work: Callable[[Given], Made], given: Sequence[Given]
) -> Iterator[Made]:
    """What `work` makes of each thing, in order, on as many threads as torch uses."""
    threads = min(torch.get_num_threads(), len(given))
    if threads < 2:
        yield from map(work, given)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(work, given)
