"""Vectors: a GloVe text file, of which only the words that are needed are kept."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse

from unalike.errors import UserError
from unalike.progress import Progress
from unalike.wiki.style import Style

LONGEST = 1 << 17
"""The most bytes of a line."""
LARGEST = 65504.0
"""What half precision can hold."""
TOLD = 1 << 13
"""Lines between two words about progress."""


@dataclass(frozen=True, eq=False)
class Lexicon:
    """The words of a file of vectors, without the vectors."""

    path: Path
    words: frozenset[str]
    dimension: int
    sha256: str

    @classmethod
    def read(cls, path: Path, progress: Progress) -> Lexicon:
        """Go through the file once, for its words and its hash."""
        digest = hashlib.sha256()
        words = set()
        dimension = 0
        for place, line in _lines(path, "words of vectors", progress):
            digest.update(line)
            if not dimension:
                dimension = _dimension(path, line)
            if not _is_header(place, line):
                words.add(_word(path, place, line, dimension)[0])
        if not words:
            raise UserError(f"{path} holds no vectors.")
        return cls(path, frozenset(words), dimension, digest.hexdigest())


@dataclass(frozen=True, eq=False)
class Vectors:
    """The vectors of some words, in a mapped file."""

    slots: dict[str, int]
    """The row of each word."""
    rows: np.ndarray

    @classmethod
    def read(
        cls, lexicon: Lexicon, used: Iterable[str], scratch: Path, progress: Progress
    ) -> Vectors:
        """Go through the file again, for the vectors of words that are used."""
        wanted, slots = set(used), dict[str, int]()
        shape = (max(1, len(wanted)), lexicon.dimension)
        rows = np.memmap(scratch, np.float32, "w+", shape=shape)
        path = lexicon.path
        for place, line in _lines(path, "vectors", progress):
            if _is_header(place, line):
                continue
            word, numbers = _word(path, place, line, lexicon.dimension)
            if word in wanted and word not in slots:
                rows[len(slots)] = _vector(path, place, numbers)
                slots[word] = len(slots)
        return cls(slots, rows)

    def means(self, texts: list[list[str]], style: Style) -> np.ndarray:
        """The mean vector of each list of words; zeros where there is none."""
        known = [[self.slots[w] for w in words if w in self.slots] for words in texts]
        lengths = np.array([len(slots) for slots in known], np.int64)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        columns = np.fromiter((slot for slots in known for slot in slots), np.int64)
        ones = np.ones(len(columns), np.float32)
        shape = (len(texts), len(self.rows))
        sums = scipy.sparse.csr_array((ones, columns, starts), shape=shape) @ self.rows
        if style.counts_unknown:
            lengths = np.array([len(words) for words in texts], np.int64)
        return sums / np.maximum(lengths, 1).astype(np.float32)[:, None]


def _lines(path: Path, what: str, progress: Progress) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that are not empty, numbered from 1."""
    try:
        progress.stage(what, path.stat().st_size, "bytes")
        with path.open("rb", buffering=1 << 20) as file:
            place = seen = 0
            while line := file.readline(LONGEST):
                place += 1
                if len(line) == LONGEST:
                    raise UserError(f"{path}, line {place} is too long for a vector.")
                if line.strip():
                    yield place, line
                if place % TOLD == 0:
                    progress.advance(file.tell() - seen)
                    seen = file.tell()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None


def _is_header(place: int, line: bytes) -> bool:
    """Does the line give counts, as the first of word2vec's and fastText's files?"""
    fields = line.split()
    return place == 1 and len(fields) == 2 and all(map(bytes.isdigit, fields))


def _dimension(path: Path, line: bytes) -> int:
    fields = line.split()
    found = int(fields[1]) if _is_header(1, line) else len(fields) - 1
    if found < 1:
        raise UserError(f"{path}, line 1 is no word with its vector.")
    return found


def _word(
    path: Path, place: int, line: bytes, dimension: int
) -> tuple[str, list[bytes]]:
    """A word, which may have spaces, and the numbers behind it."""
    word, *numbers = line.strip().rsplit(b" ", dimension)
    if len(numbers) < dimension:
        raise UserError(
            f"{path}, line {place} has {len(numbers)} numbers instead of {dimension}."
        )
    return word.decode("utf-8", "replace"), numbers


def _vector(path: Path, place: int, numbers: list[bytes]) -> np.ndarray:
    try:
        vector = np.array(numbers).astype(np.float32)
    except ValueError as error:
        raise UserError(f"{path}, line {place}: {error}.") from None
    if not (np.abs(vector) < LARGEST).all():
        raise UserError(f"{path}, line {place} holds a number that is too large.")
    return vector
