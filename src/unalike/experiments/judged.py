"""Judged: what settings were worth, on disk, so that a search can go on from there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from unalike.options import options_of

Setting = TypeVar("Setting")


class Judged(Generic[Setting]):
    """A judge that never judges twice, not even after it was stopped."""

    def __init__(self, judge: Callable[[Setting], float], file: Path) -> None:
        self.judge = judge
        self.file = file
        self.known = dict(read(file))

    def __call__(self, setting: Setting) -> float:
        told = json.dumps(options_of(setting), sort_keys=True)
        if told not in self.known:
            self.known[told] = self.judge(setting)
            with self.file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps([told, self.known[told]]) + "\n")
        return self.known[told]


def read(file: Path) -> list[tuple[str, float]]:
    """The judgements in a file; a line whose writer was killed is cut off."""
    if not file.exists():
        return []
    text = file.read_text("utf-8")
    whole, _, broken = text.rpartition("\n")
    if broken:
        file.write_text(f"{whole}\n" if whole else "", "utf-8")
    return [(told, worth) for told, worth in map(json.loads, whole.splitlines())]
