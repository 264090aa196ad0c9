"""NewTables: new nodes in files, read in bounded memory and dealt out as rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from unalike.errors import UserError
from unalike.features import Features
from unalike.graph import Graph
from unalike.importing.batch import Batch, Table
from unalike.importing.columns import node_id, require
from unalike.importing.encoding import Encoder, FeatureColumn
from unalike.importing.ids import IdIndex
from unalike.importing.tables import Tables, megabytes
from unalike.importing.threads import ahead
from unalike.importing.values import read_ids
from unalike.models.model import Model
from unalike.models.new_edges import Columns, NewEdges, RowFiles
from unalike.models.new_features import fitting
from unalike.models.new_rows import NewRows
from unalike.progress import SILENT, Progress

ROWS_AT_ONCE = 1 << 16
"""New nodes that are dealt out at once, where no table does it."""
NUMERIC = "numeric"


@dataclass(frozen=True, eq=False)
class NewTables:
    """New nodes that are numbered and joined to known ones, ready to be scored."""

    model: Model
    nodes: Sequence[Table]
    columns: Columns
    names: pa.Array
    """The user's own ids of the new nodes."""
    edges: NewEdges
    rows: tuple[RowFiles, RowFiles]

    @classmethod
    def read(
        cls,
        model: Model,
        tables: Tables,
        columns: Columns,
        folder: Path,
        progress: Progress = SILENT,
    ) -> NewTables:
        """Read who the new nodes are, and their edges into files of a folder."""
        model.check_row_wise()
        check_asked(model, tables)
        for table in tables.nodes:
            encoder_of(model, table, columns)
        index = IdIndex()
        index.add(model.known_names)
        known = len(index)
        progress.stage("Reading nodes", megabytes(tables.nodes), "MB")
        for table in tables.nodes:
            number_nodes(table, columns.id, index, known, progress)
        edges = NewEdges(index, known, bool(tables.nodes), folder, model.facts.directed)
        wanted = tables.edges if model.reads_edges else []
        edges.read(wanted, (columns.source, columns.target), progress)
        check_joined(model, edges, wanted)
        rows = edges.rows(progress)
        return cls(model, tables.nodes, columns, index.names()[known:], edges, rows)

    @property
    def num_alone(self) -> int:
        """New nodes without any known neighbour."""
        out, into = (np.diff(rows.starts) for rows in self.rows)
        return int((out + into == 0).sum())

    def batches(self, progress: Progress = SILENT) -> Iterator[tuple[pa.Array, Graph]]:
        """Names of new nodes and their prepared rows, some at a time."""
        progress.stage("Scoring", len(self.names), "nodes")
        first = 0
        for features in self._features():
            last = first + features.shape[0]
            out, into = (rows.rows(first, last) for rows in self.rows)
            directed = self.model.facts.directed
            rows = NewRows.of(out, into if directed else out, directed=directed)
            graph = self.model.facts.around(rows, features)
            yield self.names[first:last], self.model.method.prepare(graph)
            progress.advance(last - first)
            first = last

    def _features(self) -> Iterator[Features]:
        facts = self.model.facts
        for table in self.nodes:
            encoder, column = encoder_of(self.model, table, self.columns)
            for batch in ahead(table.batches([column, *encoder.names])):
                told = encoder.sparse(batch) if facts.sparse else encoder.dense(batch)
                yield fitting(told, facts)
        if not self.nodes:
            for first in range(0, len(self.names), ROWS_AT_ONCE):
                size = min(ROWS_AT_ONCE, len(self.names) - first)
                yield fitting(np.zeros((size, 0), np.float32), facts)


def check_asked(model: Model, tables: Tables) -> None:
    """Refuse to score nodes of which too little is told."""
    if model.facts.num_features and not tables.nodes:
        raise UserError(
            f"The model was trained on {model.facts.num_features} features; "
            "name the table of the new nodes by --nodes."
        )
    if model.reads_edges and not tables.edges:
        raise UserError("Name the table of the new nodes' edges by --edges.")


def check_joined(model: Model, edges: NewEdges, tables: Sequence[Table]) -> None:
    """Refuse edges that join no new node to a known one."""
    if edges.num_joined or not tables:
        return
    path = tables[0].path
    if not edges.num_unknown:
        raise UserError(f"{path}: none of {edges.num_edges:,} edges has a new node.")
    name = f" '{model.facts.name}'" if model.facts.name else ""
    raise UserError(
        f"{path}: none of {edges.num_unknown:,} neighbours is known to the model; "
        f"it was trained on another graph{name}."
    )


def encoder_of(model: Model, table: Table, columns: Columns) -> tuple[Encoder, str]:
    """How a table's columns become features, and the column of its ids.

    Where nobody told the model what its features are called, they are all columns but
    the ids, as numbers and in their order.
    """
    column = node_id(table, columns.id)
    if model.encoder is not None:
        for name in model.encoder.names:
            require(table, name)
        return model.encoder, column
    names = [name for name in table.columns if name != column]
    if model.facts.num_features and len(names) != model.facts.num_features:
        raise UserError(
            f"{table.path} has {len(names)} columns beside '{column}'; "
            f"the model was trained on {model.facts.num_features} features."
        )
    kept = names[: model.facts.num_features]
    told = (FeatureColumn(name, NUMERIC, optional=False) for name in kept)
    return Encoder(tuple(told)), column


def number_nodes(
    table: Table, told: str | None, index: IdIndex, known: int, progress: Progress
) -> None:
    """Give the new nodes of a table their codes, after those of the known ones."""
    column, before = node_id(table, told), len(index)
    for batch in ahead(table.batches([column])):
        _add_ids(batch, column, index, known)
        progress.advance(batch.read / 1e6, f"{len(index) - known:,} nodes")
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
        raise batch.wrong(row, f"the node id '{ids[row].as_py()}' {what}.")
