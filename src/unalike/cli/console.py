"""What commands share to speak: answers on standard output, progress beside it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
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

from unalike.reports.layout import Column, laid_out

RESULTS = "sqlite:///results.db"
"""Where results are kept, unless somebody says otherwise."""
WIDE = 132
"""Columns of a table that goes to no terminal, unless $COLUMNS says otherwise."""


class Voice(Console):
    """A console that leaves a pipe closed at the other end to the whole program."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


OUT = Voice(highlight=False)
ERR = Voice(stderr=True, highlight=False)


def answer(document: Any) -> None:
    """Print the one JSON document that `--json` promises."""
    print(json.dumps(document, indent=1, ensure_ascii=False))


def show(columns: Sequence[Column], *, spare: Sequence[str] = ()) -> None:
    """Print columns as a table, or as several where the terminal is narrow."""
    width = shutil.get_terminal_size((WIDE, 0)).columns
    console = Voice(highlight=False, width=width)
    for place, table in enumerate(laid_out(columns, width, spare=spare)):
        if place:
            console.print()
        console.print(table)


def note(remarks: Iterable[str]) -> None:
    """Tell on standard error what somebody should know, a line each."""
    for remark in remarks:
        ERR.print(f"note: {remark}", soft_wrap=True, markup=False)


class Bar:
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


@contextmanager
def progress_bar(*, silent: bool = False) -> Iterator[Bar]:
    """Draw progress while the block runs; only on a terminal."""
    columns = (
        TextColumn("{task.description:<18}"),
        BarColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    hidden = silent or not ERR.is_terminal
    with Progress(*columns, console=ERR, disable=hidden) as bars:
        yield Bar(bars)
