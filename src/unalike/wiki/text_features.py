"""Mean GloVe vectors of title and intro; tokenizers."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from unalike.data.store import GraphWriter
from unalike.errors import UserError
from unalike.progress import Progress
from unalike.wiki.collection import Collection

# Style: how titles and intros are taken apart into words.


WORD = re.compile(r"[^\W_]+")
BRACES = re.compile(r"\s*\{.*\}\s*")


@dataclass(frozen=True)
class Tokenizer:
    """Words of a text, and what becomes of those that have no vector."""

    about: str
    clean: Callable[[str], str]
    """What is done to an intro first."""
    words: Callable[[str], list[str]]
    count_unknown_words: bool
    """Does a word without a vector count as zeros, or not at all?"""


def identity(text: str) -> str:
    """The same text."""
    return text


def plain_words(text: str) -> list[str]:
    """Lower-case words of letters and digits."""
    return WORD.findall(text.lower())


def paper_clean(text: str) -> str:
    """The paper's way: words join over line ends, all from { to the last } is lost."""
    return BRACES.sub("", text.replace("    ", "").replace("\n", ""))


TOKENIZERS = {
    "plain": Tokenizer(
        "lower case, no punctuation, the mean of the words that have a vector",
        identity,
        plain_words,
        count_unknown_words=False,
    ),
    "paper": Tokenizer(
        "split at white space only, words without a vector count as zeros",
        paper_clean,
        str.split,
        count_unknown_words=True,
    ),
}

# Vectors: a GloVe text file, of which only the words that are needed are kept.


MAX_LINE_BYTES = 1 << 17
"""The most bytes of a line."""
FLOAT16_MAX = 65504.0
"""What half precision can hold."""
PROGRESS_LINES = 1 << 13
"""Lines between two words about progress."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The words of a file of vectors, without the vectors."""

    path: Path
    words: frozenset[str]
    dimension: int
    sha256: str

    @classmethod
    def read(cls, path: Path, progress: Progress) -> Vocabulary:
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
class WordVectors:
    """The vectors of some words, in a mapped file."""

    row_of: dict[str, int]
    """The row of each word."""
    rows: np.ndarray

    @classmethod
    def read(
        cls, lexicon: Vocabulary, used: Iterable[str], scratch: Path, progress: Progress
    ) -> WordVectors:
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

    def means(self, texts: list[list[str]], style: Tokenizer) -> np.ndarray:
        """The mean vector of each list of words; zeros where there is none."""
        known = [[self.row_of[w] for w in words if w in self.row_of] for words in texts]
        lengths = np.array([len(slots) for slots in known], np.int64)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        columns = np.fromiter((slot for slots in known for slot in slots), np.int64)
        ones = np.ones(len(columns), np.float32)
        shape = (len(texts), len(self.rows))
        sums = scipy.sparse.csr_array((ones, columns, starts), shape=shape) @ self.rows
        if style.count_unknown_words:
            lengths = np.array([len(words) for words in texts], np.int64)
        return sums / np.maximum(lengths, 1).astype(np.float32)[:, None]


def _lines(path: Path, what: str, progress: Progress) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that are not empty, numbered from 1."""
    try:
        progress.stage(what, path.stat().st_size, "bytes")
        with path.open("rb", buffering=1 << 20) as file:
            place = seen = 0
            while line := file.readline(MAX_LINE_BYTES):
                place += 1
                if len(line) == MAX_LINE_BYTES:
                    raise UserError(f"{path}, line {place} is too long for a vector.")
                if line.strip():
                    yield place, line
                if place % PROGRESS_LINES == 0:
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
    if not (np.abs(vector) < FLOAT16_MAX).all():
        raise UserError(f"{path}, line {place} holds a number that is too large.")
    return vector


# Features: word vectors of titles and intros, streamed to disk in half precision.


BATCH_PAGES = 1 << 13
"""Pages whose words are in memory together."""

Texts = tuple[list[list[str]], list[list[str]]]
"""The words of some titles, and those of their intros."""


def add_features(
    draft: GraphWriter,
    collection: Collection,
    path: Path | None,
    style: Tokenizer,
    progress: Progress,
) -> dict[str, Any]:
    """Write the features of all articles; tells what they were made of.

    Without a file of vectors there are none. The file is read twice, for its words and
    then for the vectors of those that occur, so that memory holds words alone.
    """
    num_nodes = collection.rows("pages")
    if path is None:
        draft.create_memmap("features", np.float16, (num_nodes, 0))
        return {}
    lexicon = Vocabulary.read(path, progress)
    used: set[str] = set()
    for texts in _texts(collection, style, "words of pages", progress):
        for words in texts:
            used.update(word for text in words for word in text)
            used &= lexicon.words
    scratch = draft.scratch("vectors")
    vectors = WordVectors.read(lexicon, used, scratch, progress)
    width = lexicon.dimension
    features = draft.create_memmap("features", np.float16, (num_nodes, 2 * width))
    row = 0
    for titles, intros in _texts(collection, style, "features", progress):
        end = row + len(titles)
        features[row:end, :width] = vectors.means(titles, style)
        features[row:end, width:] = vectors.means(intros, style)
        row = end
    return {
        "file": path.name,
        "sha256": lexicon.sha256,
        "dimension": width,
        "words": len(lexicon.words),
        "words_used": len(used),
    }


def _texts(
    collection: Collection, style: Tokenizer, what: str, progress: Progress
) -> Iterator[Texts]:
    progress.stage(what, collection.rows("pages"), "pages")
    for batch in collection.batches("pages", "title", "intro", rows=BATCH_PAGES):
        yield (
            [style.words(title) for title in batch.column("title").to_pylist()],
            [style.words(style.clean(i)) for i in batch.column("intro").to_pylist()],
        )
        progress.advance(batch.num_rows)
