"""Prefetch: the next batch is made while the present one is worked on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

Item = TypeVar("Item")


@dataclass
class Prefetch(Generic[Item]):
    """Iterates over items that a thread beside this one makes, one step ahead."""

    items: Iterator[Item]
    waited: float = 0.0
    """Seconds spent waiting for them."""

    def __iter__(self) -> Iterator[Item]:
        end = object()
        with ThreadPoolExecutor(1) as beside:
            coming = beside.submit(next, self.items, end)
            while True:
                began = time.perf_counter()
                item = coming.result()
                self.waited += time.perf_counter() - began
                if item is end:
                    return
                coming = beside.submit(next, self.items, end)
                yield cast(Item, item)
