"""Read new nodes and their edges from CSV or Parquet in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import torch

from unalike.data.adjacency import Adjacency
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
    require_column,
)
from unalike.inference.model import Model
from unalike.inference.new_nodes import NewRows, match_features
from unalike.parallel import prefetch
from unalike.progress import NO_PROGRESS, Progress

# NewEdges: files of edges between new nodes and known ones, as rows on disk.


OUT_EDGES, IN_EDGES = "out", "into"


@dataclass(frozen=True, kw_only=True)
class TableColumns:
    """Which columns of the tables are meant; guessed by their names if not told."""

    source: str | None = None
    """Column of the edges' sources."""
    target: str | None = None
    """Column of the edges' targets."""
    id: str | None = None
    """Column of the new nodes' ids."""
    header: Header = "guess"
    """Does the first line of a text file name its columns? Numbers alone do not."""


@dataclass(frozen=True, eq=False)
class MappedRows:
    """Sparse rows in files, of which some are wanted at a time."""

    starts: np.ndarray
    columns: np.ndarray
    width: int

    def rows(self, first: int, last: int) -> Adjacency:
        starts = self.starts[first : last + 1]
        columns = np.array(self.columns[starts[0] : starts[-1]])
        begins = torch.from_numpy(starts - starts[0])
        return Adjacency(begins, torch.from_numpy(columns), self.width)


@dataclass
class NewEdgeReader:
    """Reads edges, numbers their ends, and keeps those from new to known nodes.

    Codes below `num_known` are known nodes, those from there on are new ones.
    """

    index: IdIndex
    num_known: int
    nodes_are_listed: bool
    """Has a table named all new nodes?"""
    folder: Path
    directed: bool
    num_edges: int = 0
    num_edges_kept: int = 0
    """Edges between a new node and a known one."""
    num_unknown: int = 0
    """Neighbours of new nodes that are not known: strangers, and new nodes too."""
    num_edges_ignored: int = 0
    """Edges that touch no new node."""
    spills: dict[str, EdgeSpill] = field(init=False)

    def __post_init__(self) -> None:
        names = (OUT_EDGES, IN_EDGES) if self.directed else (OUT_EDGES,)
        self.spills = {
            name: EdgeSpill(self.folder / f"{name}.pairs", undirected=False)
            for name in names
        }
        for spill in self.spills.values():
            spill.path.touch()

    def read(
        self, tables: Sequence[Table], ends: tuple[str | None, ...], progress: Progress
    ) -> None:
        """Read all tables; pairs go to files, counts are kept here."""
        progress.stage("Reading edges", total_megabytes(tables), "MB")
        with ExitStack() as open_files:
            files = {
                name: open_files.enter_context(spill.path.open("wb"))
                for name, spill in self.spills.items()
            }
            for table in tables:
                columns = edge_columns(table, *ends)
                for batch in prefetch(table.batches(list(dict.fromkeys(columns)))):
                    self._read_batch(batch, columns, files)
                    note = f"{self.num_edges_kept:,} edges"
                    progress.advance(batch.bytes_read / 1e6, note)
                check_header(table, columns, self.index)
        if tables and not self.num_edges:
            raise UserError(f"{tables[0].path} has no rows.")

    def rows(self, progress: Progress) -> tuple[MappedRows, MappedRows]:
        """The rows of the new nodes by what they point at, and what points at them."""
        out, *into = [self._sorted_rows(name, progress) for name in self.spills]
        return out, into[0] if into else out

    def _read_batch(
        self, batch: Batch, columns: tuple[str, str], files: Mapping[str, IO[bytes]]
    ) -> None:
        codes = self._codes(
            [
                read_ids(batch, name, what)
                for name, what in zip(columns, SOURCE_AND_TARGET, strict=True)
            ]
        )
        new = codes >= self.num_known
        known = (codes >= 0) & ~new
        for name, here, there in ((OUT_EDGES, 0, 1), (IN_EDGES, 1, 0)):
            kept = name if name in self.spills else OUT_EDGES
            pairs = codes[new[:, here] & known[:, there]][:, [here, there]]
            files[kept].write(np.ascontiguousarray(pairs).data)
            self.spills[kept].count(pairs, len(self.index))
            self.num_edges_kept += len(pairs)
            self.num_unknown += int((new[:, here] & ~known[:, there]).sum())
        self.num_edges_ignored += int((~new.any(1)).sum())
        self.num_edges += len(batch)

    def _codes(self, ends: list[pa.Array]) -> np.ndarray:
        """The codes of both ends; where no table names the new nodes, edges do.

        A new node is a source that is not known, or a target that a known one has.
        """
        codes = np.stack([self.index.find(end) for end in ends], 1)
        if self.nodes_are_listed:
            return codes
        met = (codes[:, 0] >= 0) & (codes[:, 0] < self.num_known)
        fresh = (codes[:, 0] < 0, met & (codes[:, 1] < 0))
        for end, wanted in zip(ends, fresh, strict=True):
            self.index.add(end.filter(pa.array(wanted)))
        return np.stack([self.index.find(end) for end in ends], 1)

    def _sorted_rows(self, name: str, progress: Progress) -> MappedRows:
        size, spill = len(self.index), self.spills[name]
        spill.count(np.zeros((0, 2), np.int32), size)
        folder = self.folder / name
        folder.mkdir()
        rank = np.arange(size, dtype=np.int32)
        build_csr(spill, rank, GraphWriter(folder, folder), progress)
        spill.path.unlink()
        starts = np.load(folder / "starts.npy")[self.num_known :]
        empty = starts[-1] == starts[0]
        columns = np.load(folder / "columns.npy", mmap_mode=None if empty else "r")
        return MappedRows(starts, columns, self.num_known)


# NewTables: new nodes in files, read in bounded memory and dealt out as rows.


ROWS_AT_ONCE = 1 << 16
"""New nodes that are dealt out at once, where no table does it."""
NUMERIC = "numeric"


@dataclass(frozen=True, eq=False)
class NewNodeTables:
    """New nodes that are numbered and joined to known ones, ready to be scored."""

    model: Model
    nodes: Sequence[Table]
    columns: TableColumns
    names: pa.Array
    """The user's own ids of the new nodes."""
    edges: NewEdgeReader
    rows: tuple[MappedRows, MappedRows]

    @classmethod
    def read(
        cls,
        model: Model,
        tables: InputTables,
        columns: TableColumns,
        folder: Path,
        progress: Progress = NO_PROGRESS,
    ) -> NewNodeTables:
        """Read who the new nodes are, and their edges into files of a folder."""
        model.check_row_wise()
        check_inputs(model, tables)
        for table in tables.nodes:
            encoder_of(model, table, columns)
        index = IdIndex()
        index.add(model.known_names)
        known = len(index)
        progress.stage("Reading nodes", total_megabytes(tables.nodes), "MB")
        for table in tables.nodes:
            index_new_nodes(table, columns.id, index, known, progress)
        edges = NewEdgeReader(
            index, known, bool(tables.nodes), folder, model.graph_info.directed
        )
        wanted = tables.edges if model.reads_edges else []
        edges.read(wanted, (columns.source, columns.target), progress)
        check_some_edges(model, edges, wanted)
        rows = edges.rows(progress)
        return cls(model, tables.nodes, columns, index.names()[known:], edges, rows)

    @property
    def num_isolated(self) -> int:
        """New nodes without any known neighbour."""
        out, into = (np.diff(rows.starts) for rows in self.rows)
        return int((out + into == 0).sum())

    def batches(
        self, progress: Progress = NO_PROGRESS
    ) -> Iterator[tuple[pa.Array, Graph]]:
        """Names of new nodes and their prepared rows, some at a time."""
        progress.stage("Scoring", len(self.names), "nodes")
        first = 0
        for features in self._features():
            last = first + features.shape[0]
            out, into = (rows.rows(first, last) for rows in self.rows)
            directed = self.model.graph_info.directed
            rows = NewRows.of(out, into if directed else out, directed=directed)
            graph = self.model.graph_info.rows_graph(rows, features)
            yield self.names[first:last], self.model.method.prepare(graph)
            progress.advance(last - first)
            first = last

    def _features(self) -> Iterator[Features]:
        facts = self.model.graph_info
        for table in self.nodes:
            encoder, column = encoder_of(self.model, table, self.columns)
            for batch in prefetch(table.batches([column, *encoder.names])):
                told = encoder.sparse(batch) if facts.sparse else encoder.dense(batch)
                yield match_features(told, facts)
        if not self.nodes:
            for first in range(0, len(self.names), ROWS_AT_ONCE):
                size = min(ROWS_AT_ONCE, len(self.names) - first)
                yield match_features(np.zeros((size, 0), np.float32), facts)


def check_inputs(model: Model, tables: InputTables) -> None:
    """Refuse to score nodes of which too little is told."""
    if model.graph_info.num_features and not tables.nodes:
        raise UserError(
            f"The model was trained on {model.graph_info.num_features} features; "
            "name the table of the new nodes by --nodes."
        )
    if model.reads_edges and not tables.edges:
        raise UserError("Name the table of the new nodes' edges by --edges.")


def check_some_edges(
    model: Model, edges: NewEdgeReader, tables: Sequence[Table]
) -> None:
    """Refuse edges that join no new node to a known one."""
    if edges.num_edges_kept or not tables:
        return
    path = tables[0].path
    if not edges.num_unknown:
        raise UserError(f"{path}: none of {edges.num_edges:,} edges has a new node.")
    name = f" '{model.graph_info.name}'" if model.graph_info.name else ""
    raise UserError(
        f"{path}: none of {edges.num_unknown:,} neighbours is known to the model; "
        f"it was trained on another graph{name}."
    )


def encoder_of(
    model: Model, table: Table, columns: TableColumns
) -> tuple[FeatureEncoder, str]:
    """How a table's columns become features, and the column of its ids.

    Where nobody told the model what its features are called, they are all columns but
    the ids, as numbers and in their order.
    """
    column = find_id_column(table, columns.id)
    if model.encoder is not None:
        for name in model.encoder.names:
            require_column(table, name)
        return model.encoder, column
    names = [name for name in table.columns if name != column]
    if model.graph_info.num_features and len(names) != model.graph_info.num_features:
        raise UserError(
            f"{table.path} has {len(names)} columns beside '{column}'; "
            f"the model was trained on {model.graph_info.num_features} features."
        )
    kept = names[: model.graph_info.num_features]
    told = (FeatureColumn(name, NUMERIC, optional=False) for name in kept)
    return FeatureEncoder(tuple(told)), column


def index_new_nodes(
    table: Table, told: str | None, index: IdIndex, known: int, progress: Progress
) -> None:
    """Give the new nodes of a table their codes, after those of the known ones."""
    column, before = find_id_column(table, told), len(index)
    for batch in prefetch(table.batches([column])):
        _add_ids(batch, column, index, known)
        progress.advance(batch.bytes_read / 1e6, f"{len(index) - known:,} nodes")
    if len(index) == before:
        raise UserError(f"{table.path} has no rows.")


def _add_ids(batch: Batch, column: str, index: IdIndex, known: int) -> None:
    first, ids = len(index), read_ids(batch, column, "node id")
    codes = index.add(ids)
    wrong = codes != np.arange(first, first + len(batch))
    if wrong.any():
        row = int(wrong.argmax())
        what = "is known to the model already; --graph with --ids scores known nodes"
        if codes[row] >= known:
            what = "is there a second time"
        raise batch.row_error(row, f"the node id '{ids[row].as_py()}' {what}.")
