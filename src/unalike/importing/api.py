"""`import_graph()`: the steps, writing of features, graph.json."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import torch

from unalike.data.split import PARTS, Split, random_splits, stack_codes
from unalike.data.store import GraphWriter, add_names, atomic_graph_writer
from unalike.importing.csr import CsrCounts, EdgeReader, EdgeSpill, build_csr
from unalike.importing.features import CATEGORY, FeatureEncoder
from unalike.importing.ids import IdIndex
from unalike.importing.nodes import NodeData, NodeReader
from unalike.importing.options import MANY_CATEGORIES, ImportOptions, ImportSummary
from unalike.importing.readers import InputTables
from unalike.progress import NO_PROGRESS, Progress

# Features: node tables encoded into a draft, dense or sparse, as is smaller.


BINARY_KINDS = (CATEGORY, "boolean")
"""Kinds whose features are 0 or 1, so that sparse rows need no values."""


def write_features(draft: GraphWriter, nodes: NodeData, reader: NodeReader) -> bool:
    """Write the features of all nodes; are they sparse?"""
    size, width = len(nodes.names), nodes.encoder.width
    sparse = nodes.num_nonzero * 8 < size * width * 4
    if not width:
        draft.add("features", np.zeros((size, 0), np.float32))
    elif sparse:
        _write_sparse(draft, nodes.encoder, reader)
    else:
        features = draft.create_memmap("features", np.float32, (size, width))
        first = 0
        for batch in reader.batches(nodes.encoder.names):
            features[first : first + len(batch)] = nodes.encoder.dense(batch)
            first += len(batch)
    return sparse


def _write_sparse(
    draft: GraphWriter, encoder: FeatureEncoder, reader: NodeReader
) -> None:
    lengths = [np.zeros(1, np.int64)]
    weighted = any(column.kind not in BINARY_KINDS for column in encoder.columns)
    with (
        draft.append_array("features_columns", np.int32) as add_columns,
        _value_writer(draft, weighted) as add_values,
    ):
        for batch in reader.batches(encoder.names):
            rows = encoder.sparse(batch)
            lengths.append(np.diff(rows.indptr))
            add_columns(rows.indices)
            add_values(rows.data)
    draft.add("features_starts", np.cumsum(np.concatenate(lengths), dtype=np.int64))


@contextmanager
def _value_writer(
    draft: GraphWriter, weighted: bool
) -> Iterator[Callable[[Any], None]]:
    if not weighted:
        yield lambda values: None
        return
    with draft.append_array("features_values", np.float32) as append:
        yield append


# Summary: what an import made of its tables, for graph.json and for the user.


@dataclass(frozen=True)
class ImportedGraph:
    """Nodes, edges and splits of a graph whose arrays are on disk."""

    nodes: NodeData
    spill: EdgeSpill
    placed: CsrCounts
    splits: list[Split]
    sparse: bool
    directed: bool

    @property
    def num_edges(self) -> int:
        """Edges as people count them: an undirected one counts once."""
        if self.directed:
            return self.placed.num_entries
        return (self.placed.num_entries + self.placed.num_loops) // 2

    def to_dict(self, tables: InputTables, options: ImportOptions) -> dict[str, Any]:
        """What graph.json says of the graph."""
        encoder = self.nodes.encoder
        return {
            "num_nodes": len(self.nodes.names),
            "num_edges": self.num_edges,
            "num_loops": self.placed.num_loops,
            "num_features": encoder.width,
            "num_classes": len(self.nodes.class_names),
            "directed": self.directed,
            "metric": options.metric,
            "class_names": self.nodes.class_names,
            "feature_columns": [column.to_dict() for column in encoder.columns],
            "provenance": {
                **tables.about(self.spill.rows, self.nodes.rows),
                "options": asdict(options),
            },
        }

    def summary(
        self, folder: Path, tables: InputTables, seconds: float
    ) -> ImportSummary:
        """What the user is told at the end."""
        encoder, labels = self.nodes.encoder, self.nodes.labels
        counts = np.bincount(labels[labels >= 0], minlength=len(self.nodes.class_names))
        one_hot = (column for column in encoder.columns if column.kind == CATEGORY)
        return ImportSummary(
            folder=str(folder),
            nodes=len(labels),
            edges=self.num_edges,
            directed=self.directed,
            repeats=self.spill.num_pairs - self.num_edges,
            loops=self.placed.num_loops,
            isolated=int((self.spill.has_edge[: len(labels)] == 0).sum()),
            dropped=self.spill.num_dropped,
            features=encoder.width,
            one_hot_columns=sum(column.width for column in one_hot),
            sparse=self.sparse,
            classes=list(zip(self.nodes.class_names, counts.tolist(), strict=True)),
            unlabelled=int((labels < 0).sum()),
            splits=[
                {part: len(getattr(split, part)) for part in PARTS}
                for split in self.splits
            ],
            bytes=sum(file.stat().st_size for file in folder.iterdir()),
            seconds=seconds,
            notes=[*tables.notes, *self._notes()],
        )

    def _notes(self) -> Iterator[str]:
        codes = self.nodes.split_codes
        if codes is not None:
            lost = int(((codes >= 0) & (self.nodes.labels < 0)).sum())
            if lost:
                yield f"{lost:,} nodes of the split have no label and are left out."
        for column in self.nodes.encoder.columns:
            if column.width > max(MANY_CATEGORIES, len(self.nodes.names) // 2):
                yield (
                    f"The column '{column.name}' has {column.width:,} categories; "
                    f"--ignore {column.name} leaves it out."
                )


# Build: from tables of edges and nodes to a stored graph, in one call.


Paths = Sequence[str | Path]


def import_graph(
    edges: Paths,
    nodes: Paths = (),
    *,
    out: str | Path,
    options: ImportOptions | None = None,
    progress: Progress = NO_PROGRESS,
) -> ImportSummary:
    """Read tables of edges, and of nodes if there are any, into a new stored graph."""
    began = time.perf_counter()
    options = options or ImportOptions()
    tables = InputTables.open(edges, nodes, options.header)
    options.check(has_nodes=bool(tables.nodes))
    with atomic_graph_writer(Path(out)) as draft:
        built = _write(draft, tables, options, progress)
        draft.commit(built.to_dict(tables, options))
    return built.summary(Path(out), tables, time.perf_counter() - began)


def _write(
    draft: GraphWriter, tables: InputTables, options: ImportOptions, progress: Progress
) -> ImportedGraph:
    index = IdIndex()
    reader = NodeReader(tables.nodes, options, index, progress)
    told = reader.read() if tables.nodes else None
    options.check_classes(told.class_names if told else [])
    spill = EdgeSpill(draft.scratch("pairs"), undirected=not options.directed)
    edges = EdgeReader(options, only_known_ids=told is not None)
    edges.read_into(tables.edges, index, spill, progress)
    nodes, rank = _nodes_from_edges(index) if told is None else (told, _identity(index))
    placed = build_csr(spill, rank, draft, progress)
    sparse = write_features(draft, nodes, reader)
    splits = _splits(nodes, options)
    draft.add("labels", nodes.labels)
    draft.add("splits", stack_codes(splits, len(rank)))
    add_names(draft, nodes.names)
    return ImportedGraph(
        nodes, spill, placed, splits, sparse=sparse, directed=options.directed
    )


def _identity(index: IdIndex) -> np.ndarray:
    return np.arange(len(index), dtype=np.int32)


def _nodes_from_edges(index: IdIndex) -> tuple[NodeData, np.ndarray]:
    """The nodes that edges alone have told of, sorted by id, and the rank of each."""
    names = index.names()
    order = pc.array_sort_indices(names)
    rank = np.empty(len(names), np.int32)
    rank[order.to_numpy()] = _identity(index)
    unlabelled = np.full(len(names), -1)
    return NodeData(
        names.take(order), unlabelled, [], FeatureEncoder(()), 0, None
    ), rank


def _splits(nodes: NodeData, options: ImportOptions) -> list[Split]:
    labels = torch.from_numpy(nodes.labels)
    if nodes.split_codes is not None:
        # A node without a label can neither teach nor be graded.
        codes = np.where(nodes.labels < 0, -1, nodes.split_codes)
        return [Split.from_codes(torch.from_numpy(codes))]
    if not (labels >= 0).any():
        return []
    return random_splits(labels, count=options.splits, seed=options.seed)
