"""Deadline: a listener that ends work which takes too long."""

from __future__ import annotations

import time
from dataclasses import dataclass

TELLING = 1.0
"""Seconds of a stage after which it can be told how long it will take."""


class OutOfTimeError(Exception):
    """The time that was given for some work is over, or will be."""


@dataclass
class Deadline:
    """A silent listener to work that has to end at a moment of `perf_counter`.

    Work whose pace shows that it will not be done by then is ended early.
    """

    end: float
    began: float = 0.0
    """When the present stage began."""
    total: float | None = None
    done: float = 0.0

    @classmethod
    def within(cls, seconds: float) -> Deadline:
        """A deadline so many seconds from now."""
        return cls(time.perf_counter() + seconds)

    @property
    def left(self) -> float:
        """Seconds until then; below 0 when it is over."""
        return self.end - time.perf_counter()

    def part(self, share: float) -> Deadline:
        """A deadline that comes when a share of the time left is over."""
        return Deadline.within(share * self.left)

    def stage(self, what: str, total: int | float | None, unit: str) -> None:
        self.began, self.total, self.done = time.perf_counter(), total, 0.0
        self._look()

    def advance(self, amount: int | float, note: str = "") -> None:
        self.done += amount
        self._look()

    def _look(self) -> None:
        now = time.perf_counter()
        spent = now - self.began
        foreseen = now
        if self.total and self.done and spent > TELLING:
            foreseen = self.began + spent * self.total / self.done
        if foreseen > self.end:
            raise OutOfTimeError
