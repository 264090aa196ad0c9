"""Threads: work on pieces at the same time, and read ahead of who is working."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

from unalike.cores import num_cores

Piece = TypeVar("Piece")
Done = TypeVar("Done")

WORKERS = num_cores()


def in_threads(work: Callable[[Piece], Done], pieces: Iterable[Piece]) -> list[Done]:
    """The result for each piece, in order; the work must let go of Python's lock."""
    pieces = list(pieces)
    if len(pieces) < 2:
        return [work(piece) for piece in pieces]
    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(work, pieces))


def slices(length: int, *, smallest: int = 1 << 14) -> list[slice]:
    """A run of `length` things cut into one slice for each worker, none too small."""
    count = max(1, min(WORKERS, length // smallest))
    cuts = [length * cut // count for cut in range(count + 1)]
    return [slice(low, high) for low, high in pairwise(cuts)]


def ahead(items: Iterator[Piece]) -> Iterator[Piece]:
    """The same items; while one is used, a thread fetches the next."""
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(next, items, None)
        while (item := waiting.result()) is not None:
            waiting = pool.submit(next, items, None)
            yield item
