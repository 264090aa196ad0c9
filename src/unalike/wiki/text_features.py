"""Text features: the mean GloVe vector of the words of title and intro."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from unalike.data.store import GraphWriter
from unalike.errors import UserError
from unalike.files import allocate
from unalike.progress import Progress
from unalike.wiki.collection import Collection

WORD = re.compile(r"[^\W_]+")
BRACES = re.compile(r"\s*\{.*\}\s*")

MAX_LINE_BYTES = 1 << 17
"""Maximum bytes of a line."""
FLOAT16_MAX = 65504.0
"""Largest number of half precision."""
PROGRESS_LINES = 1 << 13
"""Lines between two updates of the progress bar."""
BATCH_PAGES = 1 << 13
"""Pages per batch."""

Texts = tuple[list[list[str]], list[list[str]]]
"""Words of a batch of titles, and of their intros."""


def add_features(
    writer: GraphWriter,
    collection: Collection,
    path: Path | None,
    tokenizer: Tokenizer,
    progress: Progress,
) -> dict[str, Any]:
    """Write the features of all articles; returns their provenance.

    Without a file of vectors, articles have no features. The file is read twice, for
    its words and then for the vectors of those that occur, to save memory.
    """
    num_nodes = collection.num_rows("pages")
    if path is None:
        writer.create_memmap("features", np.float16, (num_nodes, 0))
        return {}
    vocabulary = Vocabulary.read(path, progress)
    used: set[str] = set()
    for texts in _texts(collection, tokenizer, "words of pages", progress):
        for words in chain(*texts):
            used |= vocabulary.words.intersection(words)
    scratch = writer.scratch("vectors")
    vectors = WordVectors.read(vocabulary, used, scratch, progress)
    width = vocabulary.dimension
    features = writer.create_memmap("features", np.float16, (num_nodes, 2 * width))
    row = 0
    for titles, intros in _texts(collection, tokenizer, "features", progress):
        means = [vectors.means(texts, tokenizer) for texts in (titles, intros)]
        features[row : row + len(titles)] = np.hstack(means)
        row += len(titles)
    return {
        "file": path.name,
        "sha256": vocabulary.sha256,
        "dimension": width,
        "words": len(vocabulary.words),
        "words_used": len(used),
    }


def _texts(
    collection: Collection, tokenizer: Tokenizer, what: str, progress: Progress
) -> Iterator[Texts]:
    progress.stage(what, collection.num_rows("pages"), "pages")
    words, clean = tokenizer.words, tokenizer.clean
    for batch in collection.batches("pages", "title", "intro", rows=BATCH_PAGES):
        titles, intros = (batch.column(name).to_pylist() for name in ("title", "intro"))
        yield [words(title) for title in titles], [words(clean(i)) for i in intros]
        progress.advance(batch.num_rows)


@dataclass(frozen=True)
class Tokenizer:
    """How text becomes words, and whether words without a vector count."""

    clean: Callable[[str], str]
    """Preprocessing of an intro."""
    words: Callable[[str], list[str]]
    count_unknown_words: bool
    """Whether a word without a vector counts as zeros in the mean."""


def paper_clean(text: str) -> str:
    """Join lines and drop text from the first { to the last }, as the paper's code."""
    return BRACES.sub("", text.replace("    ", "").replace("\n", ""))


TOKENIZERS = {
    "plain": Tokenizer(
        str, lambda text: WORD.findall(text.lower()), count_unknown_words=False
    ),
    "paper": Tokenizer(paper_clean, str.split, count_unknown_words=True),
}
"""Plain: lower-case words of letters and digits, without punctuation; the mean is over
those that have a vector. Paper: as its code, split at white space only."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Words of a file of word vectors, without the vectors."""

    path: Path
    words: frozenset[str]
    dimension: int
    sha256: str

    @classmethod
    def read(cls, path: Path, progress: Progress) -> Vocabulary:
        """Read the words, the dimension and the hash of a file."""
        digest, words, dimension = hashlib.sha256(), set(), 0
        for number, line in _lines(path, "words of vectors", progress):
            digest.update(line)
            if not dimension:
                fields = line.split()
                dimension = int(fields[1]) if _is_header(1, line) else len(fields) - 1
                if dimension < 1:
                    raise UserError(f"{path}, line 1 is no word with its vector.")
            if not _is_header(number, line):
                words.add(_word(path, number, line, dimension)[0])
        if not words:
            raise UserError(f"{path} has no vectors.")
        return cls(path, frozenset(words), dimension, digest.hexdigest())


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Vectors of some words in a memory-mapped file."""

    row_of: dict[str, int]
    """The row of each word."""
    rows: np.ndarray

    @classmethod
    def read(
        cls, vocabulary: Vocabulary, words: set[str], scratch: Path, progress: Progress
    ) -> WordVectors:
        """Read the vectors of some words of the vocabulary."""
        row_of: dict[str, int] = {}
        shape = (max(1, len(words)), vocabulary.dimension)
        with scratch.open("wb") as file:
            allocate(file, math.prod(shape) * np.dtype(np.float32).itemsize)
        rows = np.memmap(scratch, np.float32, "r+", shape=shape)
        path = vocabulary.path
        for number, line in _lines(path, "vectors", progress):
            if _is_header(number, line):
                continue
            word, fields = _word(path, number, line, vocabulary.dimension)
            if word in words and word not in row_of:
                rows[len(row_of)] = _vector(path, number, fields)
                row_of[word] = len(row_of)
        return cls(row_of, rows)

    def means(self, texts: list[list[str]], tokenizer: Tokenizer) -> np.ndarray:
        """Return the mean vector of each list of words, zeros where it is empty."""
        known = [[self.row_of[w] for w in words if w in self.row_of] for words in texts]
        lengths = np.array([len(rows) for rows in known], np.int64)
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        indices = np.fromiter((row for rows in known for row in rows), np.int64)
        ones = np.ones(len(indices), np.float32)
        shape = (len(texts), len(self.rows))
        sums = scipy.sparse.csr_array((ones, indices, indptr), shape=shape) @ self.rows
        if tokenizer.count_unknown_words:
            lengths = np.array([len(words) for words in texts], np.int64)
        return sums / np.maximum(lengths, 1).astype(np.float32)[:, None]


def _lines(path: Path, what: str, progress: Progress) -> Iterator[tuple[int, bytes]]:
    """Yield the number, from 1 on, and the bytes of each line that is not empty."""
    try:
        progress.stage(what, path.stat().st_size, "bytes")
        with path.open("rb", buffering=1 << 20) as file:
            number = position = 0
            while line := file.readline(MAX_LINE_BYTES):
                number += 1
                if len(line) == MAX_LINE_BYTES:
                    raise UserError(f"{path}, line {number} is too long for a vector.")
                if line.strip():
                    yield number, line
                if number % PROGRESS_LINES == 0:
                    progress.advance(file.tell() - position)
                    position = file.tell()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None


def _is_header(number: int, line: bytes) -> bool:
    """Return whether the line has counts, as the first of word2vec and fastText."""
    fields = line.split() if number == 1 else []
    return len(fields) == 2 and all(map(bytes.isdigit, fields))


def _word(
    path: Path, number: int, line: bytes, dimension: int
) -> tuple[str, list[bytes]]:
    """Split a line into a word, which may have spaces, and its numbers."""
    word, *fields = line.strip().rsplit(b" ", dimension)
    if len(fields) < dimension:
        raise UserError(
            f"{path}, line {number} has {len(fields)} numbers instead of {dimension}."
        )
    return word.decode("utf-8", "replace"), fields


def _vector(path: Path, number: int, fields: list[bytes]) -> np.ndarray:
    try:
        vector = np.array(fields).astype(np.float32)
    except ValueError as error:
        raise UserError(f"{path}, line {number}: {error}.") from None
    if not (np.abs(vector) < FLOAT16_MAX).all():
        raise UserError(f"{path}, line {number} has a number that is too large.")
    return vector
