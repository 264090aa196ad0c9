"""Score the nodes of an engine's tables by a saved model, in batches or on Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from secrets import token_hex
from shutil import copyfile
from tempfile import mkdtemp
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from unalike.data.adjacency import Adjacency
from unalike.errors import UserError, require
from unalike.importing.features import FeatureEncoder
from unalike.importing.frames import FrameTable, arrow_batches, engine_errors
from unalike.importing.tables import Batch
from unalike.inference.model import Model
from unalike.inference.model_file import load_model
from unalike.inference.new_node_tables import BATCH_SIZE, TableColumns, encoder_of
from unalike.inference.predict import open_score_file, to_record_batch
from unalike.warehouse.frames import (
    NODE,
    Columns,
    LazyFrame,
    check_ends,
    check_ids,
    clean_ids,
    lazy,
    open_table,
    reverse,
)

OUT, INTO = "unalike_out", "unalike_into"
"""Columns of a row that is scored: lists of its neighbours."""


def score(
    model: Model | str | Path,
    edges: Any,
    nodes: Any,
    *,
    source: str | None = None,
    target: str | None = None,
    id: str | None = None,
    out: str | Path | None = None,
) -> Any:
    """The class and the probabilities of each node of a table, by a row-wise model.

    A node is scored by its features and its edges to nodes that the model knows, as
    `unalike predict` does. Spark gives a DataFrame that its workers compute; all other
    engines give a reader of Arrow batches, or write them to the file `out`.
    """
    loaded = model if isinstance(model, Model) else load_model(model)
    loaded.check_row_wise()
    if loaded.reads_edges and loaded.graph_info.weighted:
        raise UserError(
            "The model was trained on weighted edges; an engine reads no weights. "
            "Score new nodes by unalike predict --weight."
        )
    columns = Columns(source=source, target=target, id=id)
    with engine_errors("The graph"):
        rows, encoder = neighbour_rows(loaded, edges, nodes, columns)
        scorer = RowScorer(model, encoder)
        empty = scorer.schema(loaded, rows)
        if rows.implementation.is_pyspark() or rows.implementation.is_pyspark_connect():
            if out is not None:
                raise UserError("Spark writes its scores itself; use it without out=.")
            return score_on_spark(scorer, loaded, rows, empty)
    batches = scored_batches(scorer, rows)
    if out is None:
        return pa.RecordBatchReader.from_batches(empty, batches)
    with open_score_file(Path(out)) as add:
        for batch in batches:
            add(batch)
    return Path(out)


def scored_batches(scorer: RowScorer, rows: LazyFrame) -> Iterator[pa.RecordBatch]:
    """Scores of all rows of an engine that streams them."""
    with engine_errors("The graph"):
        yield from scorer(arrow_batches(rows, BATCH_SIZE))


def neighbour_rows(
    model: Model, edges: Any, nodes: Any, columns: Columns
) -> tuple[LazyFrame, FeatureEncoder]:
    """A row for each node: its id, the ids of its neighbours, and its features."""
    edge_table = with_lists(open_table(edges, "the table of edges"))
    node_table = with_lists(open_table(nodes, "the table of nodes"))
    encoder, _ = encoder_of(model, node_table, TableColumns(id=columns.id))
    ids = clean_ids(edge_table, node_table, columns)
    rows = lazy(node_table).select(*encoder.names, **{NODE: ids.node})
    check_ids(node_table, rows.select(node=NODE))
    pairs = lazy(edge_table).select(source=ids.source, target=ids.target)
    check_ends(edge_table, pairs)
    own = rows.select(source=NODE)
    directions = {OUT: pairs, INTO: reverse(pairs)}
    if not model.graph_info.directed:
        directions = {OUT: nw.concat([pairs, reverse(pairs)])}
    for name, ends in directions.items():
        lists = gather_lists(ends.join(own, on="source", how="semi"), name)
        rows = rows.join(lists, left_on=NODE, right_on="source", how="left")
    return rows, encoder


def with_lists(table: FrameTable) -> FrameTable:
    """The table in an engine that joins lists: an eager frame goes to polars."""
    if isinstance(table.frame, nw.LazyFrame):
        return table
    require("polars", "warehouse", "A frame in memory is scored by polars")
    return replace(table, frame=nw.from_native(table.frame.to_polars().lazy()))


def gather_lists(pairs: LazyFrame, name: str) -> LazyFrame:
    """The targets of each source as a list, by the engine's own aggregation."""
    native, engine = pairs.to_native(), pairs.implementation
    if engine.is_duckdb():
        return nw.from_native(
            native.aggregate(f"source, list(target) AS {name}", "source")
        )
    if engine.is_pyspark() or engine.is_pyspark_connect():
        from pyspark.sql.functions import collect_list

        lists = collect_list("target").alias(name)
        return nw.from_native(native.groupBy("source").agg(lists))
    return nw.from_native(native.rename({"target": name}).group_by("source").all())


@dataclass(frozen=True)
class RowScorer:
    """Scores Arrow batches of rows; it is sent to workers, which load the model."""

    model: Model | str | Path
    encoder: FeatureEncoder

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        model = self.model if isinstance(self.model, Model) else read_model(self.model)
        for batch in batches:
            if batch.num_rows:
                yield self.score(model, batch)

    def score(self, model: Model, batch: pa.RecordBatch) -> pa.RecordBatch:
        names = batch.column(NODE)
        if not model.scores_rows and (model.index.find(names) >= 0).any():
            raise UserError(
                "The model has stored scores of its own nodes; score them by "
                "unalike predict --graph, and new nodes here."
            )
        rows = Batch(FrameTable.of(batch, "the table of nodes"), 0, batch, 0.0)
        encode = self.encoder.sparse if model.graph_info.sparse else self.encoder.dense
        directed = model.graph_info.directed
        graph, _ = model.new_nodes(
            known_neighbours(model, batch.column(OUT)),
            encode(rows),
            entering=known_neighbours(model, batch.column(INTO)) if directed else None,
        )
        prediction = model.to_prediction(model.score_rows(graph))
        return plain_text(to_record_batch(names, prediction))

    def schema(self, model: Model, rows: LazyFrame) -> pa.Schema:
        kind = rows.collect_schema()[NODE]
        names = pa.array([], pa.int64() if kind.is_integer() else pa.string())
        nothing = torch.zeros(0, len(model.classes))
        empty = to_record_batch(names, model.to_prediction(nothing))
        return plain_text(empty).schema


def known_neighbours(model: Model, lists: pa.Array) -> Adjacency:
    """The neighbours that a model knows, as rows of its adjacency."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    values = pc.list_flatten(lists)
    found = model.index.find(values).astype(np.int64)
    rows = np.repeat(np.arange(len(lists)), lengths)
    return Adjacency.from_edges(
        torch.from_numpy(rows[found >= 0]),
        torch.from_numpy(found[found >= 0]),
        shape=(len(lists), model.graph_info.num_known),
    )


def plain_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with text of one Arrow type, whatever the engine had."""
    is_text = (pa.types.is_large_string, pa.types.is_string_view)
    fields = [
        one.with_type(pa.string()) if any(test(one.type) for test in is_text) else one
        for one in batch.schema
    ]
    return batch.cast(pa.schema(fields))


def score_on_spark(
    scorer: RowScorer, model: Model, rows: LazyFrame, schema: pa.Schema
) -> Any:
    """A DataFrame of scores; the file of the model is sent to the workers."""
    from pyspark.sql.pandas.types import from_arrow_schema

    frame = rows.to_native()
    # Spark refuses another file of a name that it has sent.
    path = Path(mkdtemp(prefix="unalike."), f"{token_hex(8)}.safetensors")
    if isinstance(scorer.model, Model):
        model.save(path)
    else:
        copyfile(scorer.model, path)
    frame.sparkSession.sparkContext.addFile(str(path))
    remote = RowScorer(path.name, scorer.encoder)
    function: Callable[..., Any] = remote.__call__
    return frame.mapInArrow(function, from_arrow_schema(schema))


@lru_cache(maxsize=1)
def read_model(name: str | Path) -> Model:
    """The model of a file that Spark has sent, or of a path."""
    if Path(name).is_file():
        return load_model(name)
    from pyspark import SparkFiles

    return load_model(SparkFiles.get(str(name)))
