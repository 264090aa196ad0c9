"""Thread pools: parallel map, bounded ordered map, and prefetching of the next item."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, pairwise
from threading import Lock
from time import perf_counter
from typing import Generic, TypeVar

import torch

Item = TypeVar("Item")
Output = TypeVar("Output")

MIN_SLICE = 1 << 14
"""Items of a slice that is worth a thread."""


def num_threads() -> int:
    """Threads that numerical work may use, as torch counts them."""
    return torch.get_num_threads()


@contextmanager
def use_threads(count: int) -> Iterator[None]:
    """Let torch and numba use so many threads while the block runs."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def parallel_map(
    function: Callable[[Item], Output], items: Iterable[Item]
) -> list[Output]:
    """The output for each item, in order; the function must release the GIL."""
    return list(ordered_map(function, items))


def ordered_map(
    function: Callable[[Item], Output],
    items: Iterable[Item],
    threads: int | None = None,
) -> Iterator[Output]:
    """Outputs one by one, in order; at most one per thread waits to be used."""
    threads = num_threads() if threads is None else threads
    if threads < 2:
        yield from map(function, items)
        return
    pending: deque[Future[Output]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for item in items:
            if len(pending) == threads:
                yield pending.popleft().result()
            pending.append(pool.submit(function, item))
        while pending:
            yield pending.popleft().result()


def one_thread_each(
    function: Callable[[Item], Output], items: Sequence[Item]
) -> Iterator[Output]:
    """Outputs in order; as many items at once as there are threads, each on one thread.

    A single item has all threads. torch may give other rounding on several threads, so
    the outputs of several items are the same on every machine.
    """
    threads = num_threads()
    if len(items) < 2:
        yield from map(function, items)
        return
    with use_threads(1):
        yield from ordered_map(function, items, min(threads, len(items)))


def even_slices(length: int) -> list[slice]:
    """`range(length)` in one slice for each thread, none shorter than `MIN_SLICE`."""
    count = max(1, min(num_threads(), length // MIN_SLICE))
    bounds = [length * part // count for part in range(count + 1)]
    return [slice(low, high) for low, high in pairwise(bounds)]


def prefetch(items: Iterable[Item]) -> Iterator[Item]:
    """The same items; a thread computes the next one while one is used."""
    return iter(Prefetch(items))


@dataclass(eq=False)
class Prefetch(Generic[Item]):
    """The same items in the same order, computed ahead of use by a thread.

    A consumer that stops early, by a break, an error or an interrupt, leaves no thread
    behind: the item in progress is finished, and the source is closed.
    """

    items: Iterable[Item]
    depth: int = 1
    """Items that are computed ahead; 0: no thread."""
    wait_seconds: float = 0.0
    """Seconds that the consumer waited for items, over all passes."""

    def __iter__(self) -> Iterator[Item]:
        return self._prefetched() if self.depth else iter(self.items)

    def _prefetched(self) -> Iterator[Item]:
        source = iter(self.items)
        pool = ThreadPoolExecutor(1, thread_name_prefix="prefetch")
        pending: deque[Future[list[Item]]] = deque()
        # An interrupt while a thread starts leaves one that the pool does not join.
        in_use = Lock()

        def compute() -> list[Item]:
            with in_use:
                return list(islice(source, 1))

        def submit() -> None:
            pending.append(pool.submit(compute))

        try:
            for _ in range(self.depth):
                submit()
            while item := self._next(pending):
                submit()
                yield item.pop()
        finally:
            pool.shutdown(cancel_futures=True)
            if isinstance(source, Generator):
                with in_use:
                    source.close()

    def _next(self, pending: deque[Future[list[Item]]]) -> list[Item]:
        """The next item, or an empty list at the end."""
        start = perf_counter()
        try:
            return pending.popleft().result()
        finally:
            self.wait_seconds += perf_counter() - start
