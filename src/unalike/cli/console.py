"""What commands share to speak: answers on standard output, progress beside it."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from unalike.progress import NO_PROGRESS
from unalike.progress import Progress as Listener
from unalike.reports.text_table import Column, fit_to_width

DEFAULT_DATABASE = "sqlite:///results.db"
"""Where results are kept, unless somebody says otherwise."""
DEFAULT_WIDTH = 132
"""Columns of a table that goes to no terminal, unless $COLUMNS says otherwise."""
LINE_SECONDS = 60.0
"""Between two lines about progress that go to no terminal."""


class PipeSafeConsole(Console):
    """A console that breaks lines of words on a terminal only.

    A pipe that is closed at the other end is left to the whole program.
    """

    def print(self, *objects: Any, **how: Any) -> None:
        if not self.is_terminal and all(isinstance(one, str) for one in objects):
            how.setdefault("soft_wrap", True)
        super().print(*objects, **how)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


OUT = PipeSafeConsole(highlight=False)
ERR = PipeSafeConsole(stderr=True, highlight=False)


def print_json(document: Any) -> None:
    """Print the one JSON document that `--json` promises."""
    print(json.dumps(document, indent=1, ensure_ascii=False))


def print_columns(columns: Sequence[Column], *, spare: Sequence[str] = ()) -> None:
    """Print columns as a table, or as several where the terminal is narrow."""
    width = shutil.get_terminal_size((DEFAULT_WIDTH, 0)).columns
    console = PipeSafeConsole(highlight=False, width=width)
    for place, table in enumerate(fit_to_width(columns, width, spare=spare)):
        if place:
            console.print()
        console.print(table)


def print_notes(remarks: Iterable[str]) -> None:
    """Tell on standard error what somebody should know, a line each."""
    for remark in remarks:
        print_stderr(f"note: {remark}")


def print_stderr(line: str) -> None:
    """Write a line to standard error; if nobody reads it any more, work goes on."""
    with suppress(OSError):
        ERR.print(line, soft_wrap=True, markup=False)


class ProgressBar:
    """A listener that draws the current stage as a bar on standard error."""

    def __init__(self, bars: Progress) -> None:
        self.bars = bars
        self.task: TaskID | None = None
        self.unit = ""

    def stage(self, what: str, total: int | float | None, unit: str) -> None:
        if self.task is not None:
            self.bars.update(self.task, total=self.bars.tasks[-1].completed)
        self.unit = unit
        self.task = self.bars.add_task(what, total=total, note="")

    def advance(self, amount: int | float, note: str = "") -> None:
        assert self.task is not None
        self.bars.advance(self.task, amount)
        done = self.bars.tasks[-1].completed
        self.bars.update(self.task, note=f"{done:,.0f} {self.unit} {note}")


class ProgressLines:
    """A listener that writes to a file or pipe how far long work is, now and then."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.told = time.monotonic()

    def stage(self, what: str, total: int | float | None, unit: str) -> None:
        self.what, self.total, self.unit = what, total, unit
        self.done = 0.0
        self.began = time.monotonic()

    def advance(self, amount: int | float, note: str = "") -> None:
        self.done += amount
        now = time.monotonic()
        if now - self.told >= self.seconds:
            self.told = now
            print_stderr(self.line(note))

    def line(self, note: str) -> str:
        """What is done, of how much, and how long the rest will take."""
        of = "" if self.total is None else f" of {self.total:,.0f}"
        line = f"{self.what}: {self.done:,.0f}{of} {self.unit}"
        if self.total and self.done:
            spent = time.monotonic() - self.began
            left = spent * max(0.0, self.total / self.done - 1)
            line += f", about {left / 60:,.0f} min left"
        return f"{line}; {note}" if note else line


@contextmanager
def progress_bar(*, silent: bool = False) -> Iterator[Listener]:
    """Show progress while the block runs: a bar on a terminal, lines elsewhere."""
    if silent or not ERR.is_terminal:
        yield NO_PROGRESS if silent else ProgressLines(LINE_SECONDS)
        return
    columns = (
        TextColumn("{task.description:<18}"),
        BarColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=ERR) as bars:
        yield ProgressBar(bars)
