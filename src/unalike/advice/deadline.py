"""Deadline: a listener that ends work which takes too long."""

from __future__ import annotations

import time
from dataclasses import dataclass


class OutOfTimeError(Exception):
    """The time that was given for some work is over."""


@dataclass(frozen=True)
class Deadline:
    """A silent listener to work that has to end at a moment of `perf_counter`."""

    end: float

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
        self._look()

    def advance(self, amount: int | float, note: str = "") -> None:
        self._look()

    def _look(self) -> None:
        if self.left < 0:
            raise OutOfTimeError
