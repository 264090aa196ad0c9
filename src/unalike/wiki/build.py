"""Collection to stored graph: links, quantile labels, splits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Int
from torch import Tensor

from unalike.data.adjacency import index_dtype
from unalike.data.labels import quantile_labels
from unalike.data.metrics import ACCURACY
from unalike.data.split import random_splits, stack_codes
from unalike.data.store import (
    GraphWriter,
    StoredGraph,
    add_names,
    atomic_graph_writer,
    open_graph,
)
from unalike.errors import UserError, lookup
from unalike.progress import NO_PROGRESS, Progress
from unalike.wiki.collection import SCHEMAS, Collection
from unalike.wiki.text_features import TOKENIZERS, add_features

SPLITS = 5
CLASSES = 5
COPIED_KEYS = ("wiki", "start", "pages", "site", "dates", "remarks")
"""What a graph repeats of its collection, where that tells it."""


def build_graph(
    collection: Collection,
    out: Path,
    *,
    vectors: Path | None = None,
    style: str = "plain",
    classes: int = CLASSES,
    progress: Progress = NO_PROGRESS,
) -> StoredGraph:
    """Write a collection as a stored graph: articles, links, features, labels.

    The features of an article are the mean vector of the words of its title, then that
    of its intro. The labels are even quantiles of the views, over the articles whose
    views are known.
    """
    check_build(vectors, style, classes)
    with atomic_graph_writer(out) as draft:
        progress.stage("checking", None, "bytes")
        collection.verify()
        ids, class_names = _add_pages(draft, collection, classes)
        num_edges = _add_links(draft, collection, ids, progress)
        made_of = add_features(draft, collection, vectors, TOKENIZERS[style], progress)
        draft.commit(
            {
                "num_nodes": len(ids),
                "num_edges": num_edges,
                "num_loops": 0,
                "num_features": 2 * made_of.get("dimension", 0),
                "num_classes": classes,
                "directed": True,
                "metric": ACCURACY.name,
                "class_names": class_names,
                "provenance": {
                    **{key: collection.about.get(key) for key in COPIED_KEYS},
                    "remarks": _remarks(collection, made_of),
                    "unalike": collection.about["unalike"],
                    "tables": collection.about["tables"],
                    "vectors": made_of or None,
                    "style": style,
                },
            }
        )
    return open_graph(out)


def check_build(vectors: Path | None, style: str, classes: int) -> None:
    """Refuse what no collection could be built with."""
    if vectors is not None and not vectors.is_file():
        raise UserError(f"{vectors}, the file of word vectors, is not there.")
    if classes < 2:
        raise UserError(f"Labels need 2 classes or more, not {classes}.")
    lookup(TOKENIZERS, style, "style")


def _add_pages(
    draft: GraphWriter, collection: Collection, classes: int
) -> tuple[np.ndarray, list[str]]:
    """Write names, labels and splits; gives the page ids and what classes stand for."""
    columns = ("page_id", "title", "views")
    schema = pa.schema([SCHEMAS["pages"].field(name) for name in columns])
    pages = pa.Table.from_batches(collection.batches("pages", *columns), schema)
    views = pages["views"].to_numpy().astype(np.float64)
    labels = quantile_labels(views, classes)
    splits = random_splits(labels, count=SPLITS) if (labels >= 0).any() else []
    draft.add("labels", labels.numpy())
    draft.add("splits", stack_codes(splits, len(labels)))
    add_names(draft, pages["title"].combine_chunks())
    return pages["page_id"].to_numpy(), _class_names(views, labels, classes)


def _class_names(
    views: np.ndarray, labels: Int[Tensor, " nodes"], classes: int
) -> list[str]:
    """The range of views of each class."""
    own = [views[labels.numpy() == label] for label in range(classes)]
    return [
        f"{some.min():.0f} to {some.max():.0f} views" if len(some) else "nothing"
        for some in own
    ]


def _add_links(
    draft: GraphWriter, collection: Collection, ids: np.ndarray, progress: Progress
) -> int:
    """Write the rows; the links have their order already."""
    num_links = collection.rows("links")
    degrees = np.zeros(len(ids) + 1, np.int64)
    columns = draft.create_memmap("columns", index_dtype(len(ids)), (num_links,))
    progress.stage("links", num_links, "links")
    place = 0
    for batch in collection.batches("links"):
        source, target = (_positions(column, ids) for column in batch.columns)
        rows, counts = np.unique(source, return_counts=True)
        degrees[rows + 1] += counts
        columns[place : place + len(target)] = target
        place += len(target)
        progress.advance(len(target))
    draft.add("starts", np.cumsum(degrees))
    return num_links


def _positions(column: pa.Array, ids: np.ndarray) -> np.ndarray:
    """The place of each page id among all of them."""
    wanted = column.to_numpy()
    places = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    if (wrong := ids[places] != wanted).any():
        raise UserError(
            f"The links name the page {wanted[wrong][0]}, which is missing."
        )
    return places


def _remarks(collection: Collection, made_of: dict[str, Any]) -> list[str]:
    remarks = list(collection.about.get("remarks", []))
    if not made_of:
        remarks.append("the graph has no features; --vectors names word vectors.")
    return remarks
