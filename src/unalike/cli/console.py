"""Output of commands: results on standard output, progress on standard error."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Sequence
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
from rich.text import Text

from unalike.display import Column, TextTable
from unalike.formatting import json_safe, printable
from unalike.progress import NO_PROGRESS
from unalike.progress import Progress as Listener

DEFAULT_DATABASE = "sqlite:///results.db"
DEFAULT_WIDTH = 132
"""Width of tables without a terminal and without $COLUMNS."""
LINE_SECONDS = 60.0
"""Seconds between lines of progress without a terminal."""


class PlainConsole(Console):
    """A console without markup that wraps text on terminals only.

    Names, paths and errors may contain square brackets, which rich takes for markup,
    words between colons, which it takes for emoji, and control characters, which
    terminals obey. A closed pipe raises `BrokenPipeError`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def print(self, *objects: Any, **options: Any) -> None:
        is_text = all(isinstance(each, str | Text) for each in objects)
        if is_text and not self.is_terminal:
            options.setdefault("soft_wrap", True)
        shown = (printable(each) if isinstance(each, str) else each for each in objects)
        super().print(*shown, **options)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


OUT = PlainConsole()
ERR = PlainConsole(stderr=True)


def bold(start: str, rest: str = "") -> Text:
    """Text whose start is bold."""
    return Text.assemble((printable(start), "bold"), printable(rest))


def print_json(document: Any) -> None:
    """Print the JSON document of `--json`; NaN and infinity become null.

    Bytes of a path that are not UTF-8 are surrogates, which JSON can hold as escapes.
    """
    text = json.dumps(json_safe(document), indent=1, ensure_ascii=False)
    print(text.encode(errors="backslashreplace").decode())


def print_output(document: Any, text: str, *, json: bool) -> None:
    """Print the JSON document of `--json`, or a text."""
    if json:
        print_json(document)
    else:
        OUT.print(text, soft_wrap=True)


def print_columns(columns: Sequence[Column], *, spare: Sequence[str] = ()) -> None:
    """Print columns as a table; on a narrow terminal `spare` ones are dropped."""
    print_table(TextTable(columns), spare=spare)


def print_table(table: TextTable, *, spare: Sequence[str] = ()) -> None:
    """Print a table, in parts on a narrow terminal, where `spare` columns go first."""
    width = shutil.get_terminal_size((DEFAULT_WIDTH, 0)).columns
    console = PlainConsole(width=width)
    for index, block in enumerate(table.fit(width, optional=spare)):
        if index:
            console.print()
        console.print(block)


def print_notes(*notes: str) -> None:
    """Print notes on standard error, a line each."""
    for note in notes:
        print_stderr(f"note: {note}")


def print_stderr(line: str) -> None:
    """Print a line on standard error; a closed pipe is ignored."""
    with suppress(OSError):
        ERR.print(line, soft_wrap=True)


class ProgressBar:
    """Progress listener that shows the current stage as a bar."""

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
    """Progress listener that prints a line at regular intervals."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.last_printed = time.monotonic()

    def stage(self, what: str, total: int | float | None, unit: str) -> None:
        self.what, self.total, self.unit = what, total, unit
        self.done = 0.0
        self.started = time.monotonic()

    def advance(self, amount: int | float, note: str = "") -> None:
        self.done += amount
        now = time.monotonic()
        if now - self.last_printed >= self.seconds:
            self.last_printed = now
            print_stderr(self.line(note))

    def line(self, note: str) -> str:
        """The amount done, the total, and the estimated time left."""
        total = "" if self.total is None else f" of {self.total:,.0f}"
        line = f"{self.what}: {self.done:,.0f}{total} {self.unit}"
        if self.total and self.done:
            elapsed = time.monotonic() - self.started
            left = elapsed * max(0.0, self.total / self.done - 1)
            line += f", about {left / 60:,.0f} min left"
        return f"{line}; {note}" if note else line


@contextmanager
def progress_bar(*, silent: bool = False) -> Iterator[Listener]:
    """Show progress while the block runs: a bar on terminals, lines elsewhere."""
    if silent or not ERR.is_terminal:
        yield NO_PROGRESS if silent else ProgressLines(LINE_SECONDS)
        return
    columns = (
        TextColumn("{task.description:<18}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=ERR) as bars:
        yield ProgressBar(bars)
