"""Import a graph: read tables of edges and nodes and write a stored graph."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

import numpy as np
import pyarrow.compute as pc
import torch

from unalike.data.split import PARTS, Split, random_splits, stack_codes
from unalike.data.store import (
    GraphWriter,
    StoredGraph,
    add_names,
    atomic_graph_writer,
    open_graph,
)
from unalike.data.store_checks import LABEL_VALUES
from unalike.importing.csr import EdgeSpill, build_csr, read_edges, value_appender
from unalike.importing.features import CATEGORY, LIST, FeatureColumn, FeatureEncoder
from unalike.importing.ids import IdIndex
from unalike.importing.nodes import NodeData, NodeReader
from unalike.importing.options import (
    MANY_CATEGORIES,
    MANY_CLASSES,
    ImportOptions,
    ImportSummary,
)
from unalike.importing.readers import InputTables, TableInput
from unalike.progress import NO_PROGRESS, Progress


def import_graph(
    edges: TableInput,
    nodes: TableInput = (),
    *,
    out: str | Path,
    options: ImportOptions | None = None,
    progress: Progress = NO_PROGRESS,
) -> ImportSummary:
    """Write a stored graph of edge tables and, if given, node tables.

    A table is a path, a folder, a glob, a DataFrame, an Arrow table or a `SqlQuery`;
    several are given as a list.
    """
    start = time.perf_counter()
    options = options or ImportOptions()
    tables = InputTables.open(edges, nodes, options.header)
    options.check(has_nodes=bool(tables.nodes))
    with atomic_graph_writer(Path(out)) as writer:
        imported = _write(writer, tables, options, progress)
        name = options.name or Path(out).absolute().name
        writer.commit({"name": name, **imported.to_dict()})
    return imported.summary(Path(out), time.perf_counter() - start)


def read_graph(
    edges: TableInput,
    nodes: TableInput = (),
    *,
    options: ImportOptions | None = None,
    progress: Progress = NO_PROGRESS,
) -> StoredGraph:
    """The graph of tables, for a short stay: its files are deleted with the object.

    Tables are those of `import_graph`, which keeps the files.
    """
    folder = mkdtemp(prefix="unalike-")
    try:
        import_graph(
            edges, nodes, out=Path(folder) / "graph", options=options, progress=progress
        )
        stored = open_graph(Path(folder) / "graph")
    except BaseException:
        rmtree(folder, ignore_errors=True)
        raise
    finalize(stored, rmtree, folder, ignore_errors=True)
    return stored


def _write(
    writer: GraphWriter, tables: InputTables, options: ImportOptions, progress: Progress
) -> ImportedGraph:
    index = IdIndex()
    reader = NodeReader(tables.nodes, options, index, progress)
    nodes = reader.read() if tables.nodes else None
    options.check_classes(nodes.class_names if nodes else [])
    spill = EdgeSpill(
        writer.scratch("pairs"),
        undirected=not options.directed,
        weighted=options.weight is not None,
    )
    only_known_ids = nodes is not None
    notes = read_edges(
        tables.edges, options, index, spill, progress, only_known_ids=only_known_ids
    )
    new_index = np.arange(len(index), dtype=np.int32)
    if nodes is None:
        nodes, new_index = _nodes_from_edges(index)
    nnz, num_loops = build_csr(spill, new_index, writer, progress)
    sparse = write_features(writer, nodes, reader)
    splits = _splits(nodes, options)
    writer.add("labels", nodes.labels)
    if nodes.label_values is not None:
        writer.add(LABEL_VALUES, nodes.label_values)
    writer.add("splits", stack_codes(splits, len(index)))
    add_names(writer, nodes.names)
    num_edges = nnz if options.directed else (nnz + num_loops) // 2
    return ImportedGraph(
        nodes, options, tables, spill, num_edges, num_loops, splits, notes, sparse
    )


def _nodes_from_edges(index: IdIndex) -> tuple[NodeData, np.ndarray]:
    """Return the ids in edge tables as sorted nodes, and the new index of each id."""
    names = index.names()
    order = pc.array_sort_indices(names)
    new_index = np.empty(len(names), np.int32)
    new_index[order.to_numpy()] = np.arange(len(names), dtype=np.int32)
    return NodeData(names.take(order), np.full(len(names), -1)), new_index


def _splits(nodes: NodeData, options: ImportOptions) -> list[Split]:
    labels = torch.from_numpy(nodes.labels)
    if nodes.split_codes is not None:
        # A node without a label can neither be trained on nor scored.
        codes = np.where(nodes.labels < 0, -1, nodes.split_codes)
        return [Split.from_codes(torch.from_numpy(codes))]
    if not (labels >= 0).any():
        return []
    return random_splits(labels, count=options.splits, seed=options.seed)


BINARY_KINDS = (CATEGORY, LIST, "boolean")
"""Column types whose features are 0 or 1, so that CSR needs no values."""


def write_features(writer: GraphWriter, nodes: NodeData, reader: NodeReader) -> bool:
    """Write dense or sparse features, whichever is smaller; returns if sparse."""
    num_nodes, width = len(nodes.names), nodes.encoder.width
    # A sparse element has a 4-byte index and a 4-byte value, a dense one a value.
    sparse = nodes.num_nonzero * 8 < num_nodes * width * 4
    if not width:
        writer.add("features", np.zeros((num_nodes, 0), np.float32))
    elif sparse:
        _write_sparse(writer, nodes.encoder, reader)
    else:
        features = writer.create_memmap("features", np.float32, (num_nodes, width))
        first = 0
        for batch in reader.batches(nodes.encoder.names):
            features[first : first + len(batch)] = nodes.encoder.dense(batch)
            first += len(batch)
    return sparse


def _write_sparse(
    writer: GraphWriter, encoder: FeatureEncoder, reader: NodeReader
) -> None:
    lengths = [np.zeros(1, np.int64)]
    weighted = any(column.kind not in BINARY_KINDS for column in encoder.columns)
    with (
        writer.append_array("features_columns", np.int32) as append_indices,
        value_appender(writer, "features_values", weighted=weighted) as append_values,
    ):
        for batch in reader.batches(encoder.names):
            rows = encoder.sparse(batch)
            lengths.append(np.diff(rows.indptr))
            append_indices(rows.indices)
            append_values(rows.data)
    writer.add("features_starts", np.cumsum(np.concatenate(lengths), dtype=np.int64))


@dataclass(frozen=True)
class ImportedGraph:
    """A graph whose arrays are written; makes its graph.json and its summary."""

    nodes: NodeData
    options: ImportOptions
    tables: InputTables
    spill: EdgeSpill
    num_edges: int
    """Number of edges; an undirected edge counts once."""
    num_loops: int
    splits: list[Split]
    edge_notes: list[str]
    sparse: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the document of graph.json."""
        encoder, regression = self.nodes.encoder, self.nodes.label_values is not None
        return {
            "num_nodes": len(self.nodes.names),
            "num_edges": self.num_edges,
            "num_loops": self.num_loops,
            "num_features": encoder.width,
            "num_classes": 1 if regression else len(self.nodes.class_names),
            "directed": self.options.directed,
            "metric": self.options.metric,
            "class_names": self.nodes.class_names,
            "feature_columns": [column.to_dict() for column in encoder.columns],
            "provenance": {
                **self.tables.to_dict(self.spill.rows, self.nodes.rows),
                "options": asdict(self.options),
            },
        }

    def summary(self, folder: Path, seconds: float) -> ImportSummary:
        """Return the counts that are printed at the end."""
        encoder, labels = self.nodes.encoder, self.nodes.labels
        classes, numbers = self.nodes.class_names, self.nodes.label_values
        counts = np.bincount(labels[labels >= 0], minlength=len(classes))
        one_hot = (column for column in encoder.columns if column.has_categories)
        return ImportSummary(
            folder=str(folder),
            nodes=len(labels),
            edges=self.num_edges,
            directed=self.options.directed,
            repeats=self.spill.num_pairs - self.num_edges,
            loops=self.num_loops,
            isolated=int((self.spill.has_edge[: len(labels)] == 0).sum()),
            dropped=self.spill.num_dropped,
            features=encoder.width,
            one_hot_columns=sum(column.width for column in one_hot),
            scaled_columns=sum(column.scale is not None for column in encoder.columns),
            sparse=self.sparse,
            classes=list(zip(classes, counts.tolist(), strict=False)),
            label_range=(
                None if numbers is None else (float(numbers[0]), float(numbers[-1]))
            ),
            unlabelled=int((labels < 0).sum()),
            splits=[
                {part: len(getattr(split, part)) for part in PARTS}
                for split in self.splits
            ],
            bytes=sum(file.stat().st_size for file in folder.iterdir()),
            seconds=seconds,
            notes=[*self.tables.notes, *self.edge_notes, *self._notes()],
        )

    def _notes(self) -> Iterator[str]:
        classes, labelled = len(self.nodes.class_names), (self.nodes.labels >= 0).sum()
        if classes > max(MANY_CLASSES, labelled // 2):
            yield (
                f"The label has {classes:,} classes for {labelled:,} nodes; is it an "
                "id or a number?"
            )
        codes = self.nodes.split_codes
        if codes is not None:
            unlabelled = int(((codes >= 0) & (self.nodes.labels < 0)).sum())
            if unlabelled:
                count = f"{unlabelled:,} nodes"
                yield f"{count} of the split have no label and are left out."
        for column in self.nodes.encoder.columns:
            yield from self._column_notes(column)

    def _column_notes(self, column: FeatureColumn) -> Iterator[str]:
        if not column.width:
            yield (
                f"The column '{column.name}' has no value to learn from; it gives "
                "no feature."
            )
        if column.fill is not None:
            yield (
                f"The column '{column.name}' lacks "
                f"{self.nodes.num_missing[column.name]:,} numbers: they are "
                "filled with the median and marked by an indicator feature."
            )
        if column.has_decimal_commas:
            yield (
                f"The column '{column.name}' looks like numbers with a decimal "
                "comma; it is read as categories. Write a decimal point."
            )
        elif column.has_categories and column.width > max(
            MANY_CATEGORIES, len(self.nodes.names) // 2
        ):
            yield (
                f"The column '{column.name}' has {column.width:,} categories; "
                f"--ignore {shlex.quote(column.name)} leaves it out."
            )
