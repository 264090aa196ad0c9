"""Read new nodes and their edges from CSV or Parquet in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import torch

from unalike.data.adjacency import Adjacency, NewRows
from unalike.data.graph import Features, Graph
from unalike.data.store import GraphWriter
from unalike.errors import UserError
from unalike.importing.csr import SOURCE_AND_TARGET, EdgeSpill, build_csr
from unalike.importing.features import FeatureColumn, FeatureEncoder
from unalike.importing.ids import IdIndex
from unalike.importing.readers import InputTables, total_megabytes
from unalike.importing.tables import (
    Batch,
    Header,
    Table,
    check_header,
    edge_columns,
    find_id_column,
    read_ids,
    read_weights,
    require_column,
)
from unalike.inference.model import Model
from unalike.inference.new_nodes import match_features
from unalike.parallel import prefetch
from unalike.progress import NO_PROGRESS, Progress

BATCH_SIZE = 1 << 16
"""New nodes in a batch, where no node table sets the batches."""
OUT_EDGES, IN_EDGES = "out", "into"
NUMERIC = "numeric"


@dataclass(frozen=True, kw_only=True)
class TableColumns:
    """Columns of ids in the tables; guessed from their names by default."""

    source: str | None = None
    """Column of the edges' sources."""
    target: str | None = None
    """Column of the edges' targets."""
    weight: str | None = None
    """Column of edge weights, for a model of a graph that has them."""
    id: str | None = None
    """Column of the new nodes' ids."""
    header: Header = "guess"
    """Does the first line of a text file name its columns? Numbers alone do not."""


@dataclass(frozen=True, eq=False)
class NewNodeTables:
    """New nodes and their edges to training nodes, ready to be scored in batches."""

    model: Model
    nodes: Sequence[Table]
    columns: TableColumns
    names: pa.Array
    """The user's ids of the new nodes."""
    edges: NewEdgeReader
    rows: tuple[Adjacency, Adjacency]
    """What each new node points at, and what points at it, in memory-mapped files."""

    @classmethod
    def read(
        cls,
        model: Model,
        tables: InputTables,
        columns: TableColumns,
        folder: Path,
        progress: Progress = NO_PROGRESS,
    ) -> NewNodeTables:
        """Read the ids of new nodes, and spill their edges to files of a folder."""
        model.check_row_wise()
        check_inputs(model, tables)
        check_weights(model, columns.weight)
        for table in tables.nodes:
            encoder_of(model, table, columns)
        index = IdIndex()
        index.add(model.known_names)
        num_known = len(index)
        progress.stage("Reading nodes", total_megabytes(tables.nodes), "MB")
        for table in tables.nodes:
            index_new_nodes(table, columns.id, index, num_known, progress)
        edges = NewEdgeReader(model, columns, index, bool(tables.nodes), folder)
        edges.read(tables.edges if model.reads_edges else [], progress)
        rows = edges.rows(progress)
        return cls(model, tables.nodes, columns, index.names()[num_known:], edges, rows)

    @property
    def num_isolated(self) -> int:
        out, into = self.rows
        return int((out.degrees + into.degrees == 0).sum())

    def batches(
        self, progress: Progress = NO_PROGRESS
    ) -> Iterator[tuple[pa.Array, Graph]]:
        """Ids of new nodes with their prepared rows, batch by batch."""
        progress.stage("Scoring", len(self.names), "nodes")
        info, start = self.model.graph_info, 0
        for features in self._features():
            batch = slice(start, start + features.shape[0])
            out = self.rows[0][batch]
            into = self.rows[1][batch] if info.directed else out
            rows = NewRows.of(out, into, directed=info.directed)
            graph = info.rows_graph(rows, features)
            yield self.names[batch], self.model.method.prepare(graph)
            progress.advance(batch.stop - start)
            start = batch.stop

    def _features(self) -> Iterator[Features]:
        info = self.model.graph_info
        for table in self.nodes:
            encoder, id_column = encoder_of(self.model, table, self.columns)
            encode = encoder.sparse if info.sparse else encoder.dense
            for batch in prefetch(table.batches([id_column, *encoder.names])):
                yield match_features(encode(batch), info)
        if not self.nodes:
            for start in range(0, len(self.names), BATCH_SIZE):
                size = min(BATCH_SIZE, len(self.names) - start)
                yield match_features(np.zeros((size, 0), np.float32), info)


@dataclass
class NewEdgeReader:
    """Reads edge tables and spills the edges between new and known nodes to files.

    Codes below `num_known` are known nodes, codes from `num_known` on are new ones.
    """

    model: Model
    columns: TableColumns
    index: IdIndex
    nodes_are_listed: bool
    """Does a node table list all new nodes?"""
    folder: Path
    num_edges: int = 0
    num_edges_kept: int = 0
    """Edges between a new node and a known one."""
    num_unknown: int = 0
    """Neighbours of new nodes that are not known, other new nodes among them."""
    num_edges_ignored: int = 0
    """Edges without a new node."""

    @property
    def num_known(self) -> int:
        return self.model.graph_info.num_known

    @property
    def weight(self) -> str | None:
        """Column of edge weights."""
        return self.columns.weight if self.model.reads_edges else None

    @cached_property
    def spills(self) -> dict[str, EdgeSpill]:
        """A file of the edges of new nodes for each direction."""
        weighted, directed = self.weight is not None, self.model.graph_info.directed
        names = (OUT_EDGES, IN_EDGES) if directed else (OUT_EDGES,)
        return {
            name: EdgeSpill(
                self.folder / f"{name}.pairs", undirected=False, weighted=weighted
            )
            for name in names
        }

    def read(self, tables: Sequence[Table], progress: Progress) -> None:
        """Read all tables, write pairs to files and count edges."""
        progress.stage("Reading edges", total_megabytes(tables), "MB")
        with ExitStack() as open_files:
            files = {
                name: open_files.enter_context(spill.path.open("wb"))
                for name, spill in self.spills.items()
            }
            for table in tables:
                ends = edge_columns(
                    table,
                    self.columns.source,
                    self.columns.target,
                    known=self.index,
                    weight=self.weight,
                )
                for batch in prefetch(table.batches(list(dict.fromkeys(ends.used)))):
                    self._read_batch(batch, ends.names, files)
                    note = f"{self.num_edges_kept:,} edges"
                    progress.advance(batch.bytes_read / 1e6, note)
                check_header(table, ends.names, self.index)
        if tables and not self.num_edges_kept:
            raise UserError(f"{tables[0].path}{self._why_no_edges()}")

    def _why_no_edges(self) -> str:
        if not self.num_edges:
            return " has no rows."
        if not self.num_unknown:
            return f": none of {self.num_edges:,} edges has a new node."
        name = self.model.graph_info.name
        quoted = f" '{name}'" if name else ""
        return (
            f": none of {self.num_unknown:,} neighbours is known to the model; "
            f"it was trained on another graph{quoted}."
        )

    def rows(self, progress: Progress) -> tuple[Adjacency, Adjacency]:
        """The out-edges and the in-edges of the new nodes as CSR rows."""
        out, *into = [self._sorted_rows(name, progress) for name in self.spills]
        return out, into[0] if into else out

    def _read_batch(
        self, batch: Batch, columns: tuple[str, str], files: Mapping[str, IO[bytes]]
    ) -> None:
        ends = zip(columns, SOURCE_AND_TARGET, strict=True)
        codes = self._codes([read_ids(batch, name, what) for name, what in ends])
        is_new = codes >= self.num_known
        is_known = (codes >= 0) & ~is_new
        weights = np.zeros((len(batch), 0), np.int32)
        if self.weight is not None:
            weights = read_weights(batch, self.weight).view(np.int32)[:, None]
        for direction, end, other_end in ((OUT_EDGES, 0, 1), (IN_EDGES, 1, 0)):
            name = direction if direction in self.spills else OUT_EDGES
            new, known = is_new[:, end], is_known[:, other_end]
            kept = new & known
            pairs = np.hstack([codes[kept][:, [end, other_end]], weights[kept]])
            files[name].write(np.ascontiguousarray(pairs).data)
            self.spills[name].count(pairs, len(self.index))
            self.num_edges_kept += len(pairs)
            self.num_unknown += int((new & ~known).sum())
        self.num_edges_ignored += int((~is_new.any(1)).sum())
        self.num_edges += len(batch)

    def _codes(self, ends: list[pa.Array]) -> np.ndarray:
        """The codes of both ends of each edge.

        Without a node table, a new node is an unknown source, or an unknown target of
        a known source.
        """
        codes = np.stack([self.index.find(end) for end in ends], 1)
        if self.nodes_are_listed:
            return codes
        known_source = (codes[:, 0] >= 0) & (codes[:, 0] < self.num_known)
        is_new = (codes[:, 0] < 0, known_source & (codes[:, 1] < 0))
        for end, mask in zip(ends, is_new, strict=True):
            self.index.add(end.filter(pa.array(mask)))
        return np.stack([self.index.find(end) for end in ends], 1)

    def _sorted_rows(self, name: str, progress: Progress) -> Adjacency:
        size, spill = len(self.index), self.spills[name]
        spill.count(np.zeros((0, 2), np.int32), size)
        folder = self.folder / name
        folder.mkdir()
        rank = np.arange(size, dtype=np.int32)
        build_csr(spill, rank, GraphWriter(folder, folder), progress)
        spill.path.unlink()

        def load(array: str) -> torch.Tensor:
            # An empty array cannot be mapped; torch takes arrays that can be written.
            mode: Any = "c" if spill.num_pairs else None
            return torch.from_numpy(np.load(folder / f"{array}.npy", mmap_mode=mode))

        values = load("values") if spill.weighted else None
        indptr = load("starts")[self.num_known :]
        return Adjacency(indptr, load("columns"), self.num_known, values)


def check_inputs(model: Model, tables: InputTables) -> None:
    """Raise if the model needs a table that is missing."""
    if model.graph_info.num_features and not tables.nodes:
        raise UserError(
            f"The model was trained on {model.graph_info.num_features} features; "
            "name the table of the new nodes by --nodes."
        )
    if model.reads_edges and not tables.edges:
        raise UserError("Name the table of the new nodes' edges by --edges.")


def check_weights(model: Model, weight: str | None) -> None:
    """Raise unless weights are given just where the model has learned from them."""
    if not model.reads_edges or model.graph_info.weighted == (weight is not None):
        return
    if weight is None:
        raise UserError(
            "The model was trained on weighted edges; name the column of weights by "
            "--weight."
        )
    raise UserError("The model was trained on edges without weights; omit --weight.")


def encoder_of(
    model: Model, table: Table, columns: TableColumns
) -> tuple[FeatureEncoder, str]:
    """The encoder of a table's feature columns, and the name of its id column.

    A model that stores no encoder takes all columns but the ids, as numbers and in
    their order.
    """
    id_column = find_id_column(table, columns.id)
    if model.encoder is not None:
        for name in model.encoder.names:
            require_column(table, name)
        return model.encoder, id_column
    names = [name for name in table.columns if name != id_column]
    num_features = model.graph_info.num_features
    if num_features and len(names) != num_features:
        raise UserError(
            f"{table.path} has {len(names)} columns besides '{id_column}'; "
            f"the model was trained on {num_features} features."
        )
    numeric = (FeatureColumn(name, NUMERIC, optional=False) for name in names)
    return FeatureEncoder(tuple(numeric) if num_features else ()), id_column


def index_new_nodes(
    table: Table,
    id_column: str | None,
    index: IdIndex,
    num_known: int,
    progress: Progress,
) -> None:
    """Add the ids of a node table to the index, after the known nodes."""
    column, size_before = find_id_column(table, id_column), len(index)
    for batch in prefetch(table.batches([column])):
        _add_ids(batch, column, index, num_known)
        progress.advance(batch.bytes_read / 1e6, f"{len(index) - num_known:,} nodes")
    if len(index) == size_before:
        raise UserError(f"{table.path} has no rows.")


def _add_ids(batch: Batch, column: str, index: IdIndex, num_known: int) -> None:
    first, ids = len(index), read_ids(batch, column, "node id")
    codes = index.add(ids)
    wrong = codes != np.arange(first, first + len(batch))
    if wrong.any():
        row = int(wrong.argmax())
        what = "is known to the model already; --graph with --ids scores known nodes"
        if codes[row] >= num_known:
            what = "is there a second time"
        raise batch.row_error(row, f"the node id '{ids[row].as_py()}' {what}.")
