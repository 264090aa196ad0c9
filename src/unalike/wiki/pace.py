"""Pace: when the next request may go out, for all threads together."""

from __future__ import annotations

import threading
import time


class StoppedError(Exception):
    """The crawl is being ended; nobody waits any longer."""


class Pace:
    """A rate that is never exceeded, and rests that everybody keeps."""

    def __init__(self, rate: float) -> None:
        self.gap = 1 / rate if rate else 0.0
        self.free_at = 0.0
        self.turns = 0
        self.lock = threading.Lock()
        self.stopped = threading.Event()

    def wait(self) -> None:
        """Come back when it is this thread's turn."""
        while not self.stopped.wait(self._left()):
            with self.lock:
                now = time.monotonic()
                if now >= self.free_at:
                    self.free_at = now + self.gap
                    self.turns += 1
                    return
        raise StoppedError

    def rest(self, seconds: float) -> None:
        """Nobody asks for so many seconds."""
        with self.lock:
            self.free_at = max(self.free_at, time.monotonic() + seconds)

    def _left(self) -> float:
        with self.lock:
            return max(0.0, self.free_at - time.monotonic())

    def stop(self) -> None:
        """Wake everybody up for good."""
        self.stopped.set()
