"""Prefetch: while one batch is used, a thread makes the next."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from typing import Generic, TypeVar

Item = TypeVar("Item")


@dataclass(eq=False)
class Prefetch(Generic[Item]):
    """The same items in the same order, made ahead by a thread of their own.

    Whoever stops early, by a break, an error or an interrupt, leaves no thread behind:
    the item that is being made is finished, and the source is closed.
    """

    items: Iterable[Item]
    depth: int = 1
    """Items that are made ahead; 0: none, and there is no thread."""
    waited: float = 0.0
    """Seconds in which the user had to wait for an item, over all passes."""

    def __iter__(self) -> Iterator[Item]:
        return self._ahead() if self.depth else iter(self.items)

    def _ahead(self) -> Iterator[Item]:
        source = iter(self.items)
        pool = ThreadPoolExecutor(1, thread_name_prefix="prefetch")
        coming: deque[Future[list[Item]]] = deque()

        def begin() -> None:
            coming.append(pool.submit(lambda: list(islice(source, 1))))

        try:
            for _ in range(self.depth):
                begin()
            while made := self._next(coming):
                begin()
                yield made.pop()
        finally:
            pool.shutdown(cancel_futures=True)
            if isinstance(source, Generator):
                source.close()

    def _next(self, coming: deque[Future[list[Item]]]) -> list[Item]:
        """The next item, or nothing where there is none."""
        began = perf_counter()
        try:
            return coming.popleft().result()
        finally:
            self.waited += perf_counter() - began
