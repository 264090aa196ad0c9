"""Build a stored graph from a wiki collection: links, features, quantile labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from unalike.data.adjacency import index_dtype
from unalike.data.graph import quantile_labels
from unalike.data.metrics import ACCURACY
from unalike.data.split import random_splits, stack_codes
from unalike.data.store import (
    GraphWriter,
    StoredGraph,
    add_names,
    atomic_graph_writer,
    open_graph,
)
from unalike.datasets.splits import NUM_SPLITS
from unalike.errors import UserError, lookup
from unalike.progress import NO_PROGRESS, Progress
from unalike.wiki.collection import SCHEMAS, Collection
from unalike.wiki.text_features import TOKENIZERS, add_features

CLASSES = 5
COPIED_KEYS = ("wiki", "start", "pages", "site", "dates", "remarks")
"""Metadata of a collection that graph.json repeats."""


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

    Features are the mean word vector of the title, then that of the intro. Labels are
    quantiles of the views, over the articles whose views are known.
    """
    check_build(vectors, style, classes)
    with atomic_graph_writer(out) as writer:
        progress.stage("checking", None, "bytes")
        collection.verify()
        ids, class_names = _add_pages(writer, collection, classes)
        num_edges = _add_links(writer, collection, ids, progress)
        tokenizer = TOKENIZERS[style]
        vector_info = add_features(writer, collection, vectors, tokenizer, progress)
        remarks = list(collection.metadata.get("remarks", []))
        if not vector_info:
            remarks.append("the graph has no features; --vectors adds word vectors.")
        writer.commit(
            {
                "num_nodes": len(ids),
                "num_edges": num_edges,
                "num_loops": 0,
                "num_features": 2 * vector_info.get("dimension", 0),
                "num_classes": classes,
                "directed": True,
                "metric": ACCURACY.name,
                "class_names": class_names,
                "provenance": {
                    **{key: collection.metadata.get(key) for key in COPIED_KEYS},
                    "remarks": remarks,
                    "unalike": collection.metadata["unalike"],
                    "tables": collection.metadata["tables"],
                    "vectors": vector_info or None,
                    "style": style,
                },
            }
        )
    return open_graph(out)


def check_build(vectors: Path | None, style: str, classes: int) -> None:
    """Raise an error for arguments that `build_graph` cannot use."""
    if vectors is not None and not vectors.is_file():
        raise UserError(f"There is no file of word vectors {vectors}.")
    if classes < 2:
        raise UserError(f"Labels need 2 classes or more, not {classes}.")
    lookup(TOKENIZERS, style, "style")


def _add_pages(
    writer: GraphWriter, collection: Collection, classes: int
) -> tuple[np.ndarray, list[str]]:
    """Write names, labels and splits; returns page ids and the views of each class."""
    columns = ("page_id", "title", "views")
    schema = pa.schema([SCHEMAS["pages"].field(name) for name in columns])
    pages = pa.Table.from_batches(collection.batches("pages", *columns), schema)
    views = pages["views"].to_numpy().astype(np.float64)
    labels = quantile_labels(views, classes)
    splits = random_splits(labels, count=NUM_SPLITS) if (labels >= 0).any() else []
    writer.add("labels", labels.numpy())
    writer.add("splits", stack_codes(splits, len(labels)))
    add_names(writer, pages["title"].combine_chunks())
    views_of = (views[labels.numpy() == label] for label in range(classes))
    class_names = [
        f"{values.min():.0f} to {values.max():.0f} views" if len(values) else "nothing"
        for values in views_of
    ]
    return pages["page_id"].to_numpy(), class_names


def _add_links(
    writer: GraphWriter, collection: Collection, ids: np.ndarray, progress: Progress
) -> int:
    """Write the CSR arrays of the links, which are sorted; returns their number."""
    num_links = collection.num_rows("links")
    degrees = np.zeros(len(ids) + 1, np.int64)
    indices = writer.create_memmap("columns", index_dtype(len(ids)), (num_links,))
    progress.stage("links", num_links, "links")
    position = 0
    for batch in collection.batches("links"):
        source, target = (_node_indices(column, ids) for column in batch.columns)
        rows, counts = np.unique(source, return_counts=True)
        degrees[rows + 1] += counts
        indices[position : position + len(target)] = target
        position += len(target)
        progress.advance(len(target))
    writer.add("starts", np.cumsum(degrees))
    return num_links


def _node_indices(column: pa.Array, ids: np.ndarray) -> np.ndarray:
    """Return the index of each page id among all page ids."""
    page_ids = column.to_numpy()
    indices = np.minimum(np.searchsorted(ids, page_ids), len(ids) - 1)
    if (unknown := ids[indices] != page_ids).any():
        raise UserError(
            f"The links name the page {page_ids[unknown][0]}, which is missing."
        )
    return indices
