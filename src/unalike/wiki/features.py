"""Features: word vectors of titles and intros, streamed to disk in half precision."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from unalike.draft import Draft
from unalike.progress import Progress
from unalike.wiki.collection import Collection
from unalike.wiki.style import Style
from unalike.wiki.vectors import Lexicon, Vectors

PAGES = 1 << 13
"""Pages whose words are in memory together."""

Texts = tuple[list[list[str]], list[list[str]]]
"""The words of some titles, and those of their intros."""


def add_features(
    draft: Draft,
    collection: Collection,
    path: Path | None,
    style: Style,
    progress: Progress,
) -> dict[str, Any]:
    """Write the features of all articles; tells what they were made of.

    Without a file of vectors there are none. The file is read twice, for its words and
    then for the vectors of those that occur, so that memory holds words alone.
    """
    num_nodes = collection.rows("pages")
    if path is None:
        draft.reserve("features", np.float16, (num_nodes, 0))
        return {}
    lexicon = Lexicon.read(path, progress)
    used: set[str] = set()
    for texts in _texts(collection, style, "words of pages", progress):
        for words in texts:
            used.update(word for text in words for word in text)
            used &= lexicon.words
    scratch = draft.scratch("vectors")
    vectors = Vectors.read(lexicon, used, scratch, progress)
    width = lexicon.dimension
    features = draft.reserve("features", np.float16, (num_nodes, 2 * width))
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
    collection: Collection, style: Style, what: str, progress: Progress
) -> Iterator[Texts]:
    progress.stage(what, collection.rows("pages"), "pages")
    for batch in collection.batches("pages", "title", "intro", rows=PAGES):
        yield (
            [style.words(title) for title in batch.column("title").to_pylist()],
            [style.words(style.clean(i)) for i in batch.column("intro").to_pylist()],
        )
        progress.advance(batch.num_rows)
