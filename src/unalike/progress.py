"""Progress listener protocol."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class Progress(Protocol):
    """A listener; the command line draws a bar, a library call stays silent."""

    def stage(self, what: str, total: int | float | None, unit: str) -> None:
        """A new stage begins, of `total` units where that is known."""

    def advance(self, amount: int | float, note: str = "") -> None:
        """So many more units are done; `note` says what is worth seeing beside them."""


class NoProgress:
    """A listener that says nothing."""

    def stage(self, what: str, total: int | float | None, unit: str) -> None:
        pass

    def advance(self, amount: int | float, note: str = "") -> None:
        pass


NO_PROGRESS = NoProgress()
