"""Build: from tables of edges and nodes to a stored graph, in one call."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import torch

from unalike.draft import Draft, drafting
from unalike.importing.edges import EdgeReader, Spill
from unalike.importing.encoding import Encoder
from unalike.importing.features import write_features
from unalike.importing.ids import IdIndex
from unalike.importing.nodes import NodeReader, Nodes
from unalike.importing.options import ImportOptions
from unalike.importing.placing import place_rows
from unalike.importing.summary import Built, Summary
from unalike.importing.tables import Tables
from unalike.progress import SILENT, Progress
from unalike.split import Split, random_splits, to_matrix
from unalike.store import add_names

Paths = Sequence[str | Path]


def import_graph(
    edges: Paths,
    nodes: Paths = (),
    *,
    out: str | Path,
    options: ImportOptions | None = None,
    progress: Progress = SILENT,
) -> Summary:
    """Read tables of edges, and of nodes if there are any, into a new stored graph."""
    began = time.perf_counter()
    options = options or ImportOptions()
    tables = Tables.open(edges, nodes, options.header)
    options.check(has_nodes=bool(tables.nodes))
    with drafting(Path(out)) as draft:
        built = _write(draft, tables, options, progress)
        draft.commit(built.about(tables, options))
    return built.summary(Path(out), tables, time.perf_counter() - began)


def _write(
    draft: Draft, tables: Tables, options: ImportOptions, progress: Progress
) -> Built:
    index = IdIndex()
    reader = NodeReader(tables.nodes, options, index, progress)
    told = reader.read() if tables.nodes else None
    options.check_classes(told.class_names if told else [])
    spill = Spill(draft.scratch("pairs"), mirrored=not options.directed)
    edges = EdgeReader(options, closed=told is not None)
    edges.spill(tables.edges, index, spill, progress)
    nodes, rank = _in_order(index) if told is None else (told, _same(index))
    placed = place_rows(spill, rank, draft, progress)
    sparse = write_features(draft, nodes, reader)
    splits = _splits(nodes, options)
    draft.add("labels", nodes.labels)
    draft.add("splits", to_matrix(splits, len(rank)))
    add_names(draft, nodes.names)
    return Built(nodes, spill, placed, splits, sparse=sparse, directed=options.directed)


def _same(index: IdIndex) -> np.ndarray:
    return np.arange(len(index), dtype=np.int32)


def _in_order(index: IdIndex) -> tuple[Nodes, np.ndarray]:
    """The nodes that edges alone have told of, sorted by id, and the rank of each."""
    names = index.names()
    order = pc.array_sort_indices(names)
    rank = np.empty(len(names), np.int32)
    rank[order.to_numpy()] = _same(index)
    unlabelled = np.full(len(names), -1)
    return Nodes(names.take(order), unlabelled, [], Encoder(()), 0, None), rank


def _splits(nodes: Nodes, options: ImportOptions) -> list[Split]:
    labels = torch.from_numpy(nodes.labels)
    if nodes.codes is not None:
        # A node without a label can neither teach nor be graded.
        codes = np.where(nodes.labels < 0, -1, nodes.codes)
        return [Split.from_codes(torch.from_numpy(codes))]
    if not (labels >= 0).any():
        return []
    return random_splits(labels, count=options.splits, seed=options.seed)
