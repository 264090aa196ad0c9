"""Titles: the names of a wiki's pages as its tables spell them, and their numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unalike.importing.keys import TextKeys, Words
from unalike.importing.threads import in_threads, slices
from unalike.wiki.dumps.work import Stage


class Titles:
    """An index from titles to numbers from 0 on, in the order they were added."""

    def __init__(self) -> None:
        self.keys = TextKeys()

    def __len__(self) -> int:
        return self.keys.count

    @classmethod
    def of(cls, names: pa.Array) -> Titles:
        """An index of these titles."""
        titles = cls()
        titles.add(names)
        return titles

    def names(self) -> pa.Array:
        """The titles in the order of their numbers."""
        return self.keys.names()

    def find(self, names: pa.Array) -> np.ndarray:
        """The number of each title, -1 where it is unknown."""
        return self._search(names)[0]

    def add(self, names: pa.Array) -> np.ndarray:
        """The number of each title; unknown ones get the next."""
        numbers, keys, num_new = self._search(names)
        if num_new:
            self.keys.add(keys, numbers, num_new)
        return numbers

    def _search(self, names: pa.Array) -> tuple[np.ndarray, Any, int]:
        keys = self.keys.read(names)
        numbers = np.empty(len(names), np.int32)
        new = in_threads(
            lambda part: self.keys.find(keys, part, numbers[part]), slices(len(names))
        )
        return numbers, keys, sum(new)


def save_titles(stage: Stage, names: pa.Array) -> None:
    """Keep titles with a stage's results."""
    words = Words.of(names)
    first, end = words.starts[0], words.starts[-1]
    stage.save(title_starts=words.starts - first, title_text=words.text[first:end])


def load_titles(stage: Stage) -> pa.Array:
    """The titles that were kept with a stage's results."""
    starts, text = stage.load("title_starts"), stage.load("title_text")
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.large_string(), len(starts) - 1, buffers)


def count_titles(stage: Stage) -> int:
    """How many titles were kept with a stage's results."""
    return len(stage.mapped("title_starts")) - 1


def readable(names: pa.Array) -> pa.Array:
    """Titles as people write them, with spaces; bytes that are no text are replaced."""
    try:
        names.validate(full=True)
    except pa.ArrowInvalid:
        told = names.cast(pa.large_binary()).to_pylist()
        names = pa.array([one.decode("utf-8", "replace") for one in told])
    return pc.replace_substring(names.cast(pa.large_string()), "_", " ")
