"""Interrupt: a wish to stop that is not lost, wherever it arrives."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def noting(stop: threading.Event) -> Iterator[None]:
    """Note every interruption while the block runs, besides raising it.

    Compiled code may swallow what is raised inside it, or turn it into another error.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def note(number: int, frame: FrameType | None) -> None:
        stop.set()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def heed(stop: threading.Event) -> None:
    """Stop now, if that was wished."""
    if stop.is_set():
        raise KeyboardInterrupt
