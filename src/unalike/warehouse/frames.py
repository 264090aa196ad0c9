"""Edges and nodes of a graph as lazy frames of one engine, checked and cleaned."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import Any, Literal, TypeAlias

import narwhals as nw
from narwhals import col, lit, when

from unalike.errors import UserError
from unalike.importing.csr import check_dropped
from unalike.importing.frames import Frame, FrameTable, engine_errors
from unalike.importing.nodes import SPLIT_NAMES, LabelReader
from unalike.importing.readers import with_distinct_columns
from unalike.importing.tables import (
    EdgeColumns,
    edge_columns,
    find_id_column,
    require_column,
)

LazyFrame: TypeAlias = nw.LazyFrame[Any]

WHITESPACE = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005"
    "\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
"""What `str.strip` and an import remove; engines differ in what they remove alone."""
MAX_CLASSES = 10_000
"""Distinct labels that are read from the engine at most."""
PRIMES = (2**31 - 69, 2**31 - 99)
"""Primes p with 3 not a divisor of p - 1, so that cubes mod p are a permutation."""
NODE = "unalike_node"
"""Column of cleaned ids next to the columns of a node table."""
ROUNDS = (198_491_317, 6_542_989, 1_500_450_271)
"""What is added before each cube of a hash."""


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Names of columns; ids are guessed as by `import_graph` where none is given."""

    source: str | None = None
    target: str | None = None
    id: str | None = None
    label: str | None = None
    split: str | None = None
    fold: str | None = None


@dataclass
class Engine:
    """Tables that are kept in their engine until the work is done."""

    stack: ExitStack = field(default_factory=ExitStack)

    def keep(self, frame: LazyFrame, given: Any = None) -> LazyFrame:
        """Compute a table once: a temporary one in DuckDB, a persisted one in Spark.

        DuckDB binds a relation's parents again whenever it is used: a result that
        outlives other kept tables is read through a relation that was `given`.
        """
        native, kind = frame.to_native(), frame.implementation
        if kind.is_duckdb():
            name = f"unalike_{token_hex(8)}"
            native.query(
                "unalike_input", f"CREATE TEMP TABLE {name} AS FROM unalike_input"
            )
            reader = native if given is None else given
            kept = reader.query("unalike_input", f"SELECT * FROM {name}")
            drop = f"DROP TABLE IF EXISTS {name}"
            self.stack.callback(lambda: native.query("unalike_input", drop))
            return nw.from_native(kept)
        if kind.is_pyspark() or kind.is_pyspark_connect():
            kept = native.persist()
            self.stack.callback(kept.unpersist)
            return nw.from_native(kept)
        return frame.collect().lazy()


def collect(frame: LazyFrame) -> list[dict[str, Any]]:
    """The rows of a small table."""
    return frame.collect("pyarrow").to_native().to_pylist()


def count_rows(frame: LazyFrame) -> int:
    """The number of rows."""
    [row] = collect(frame.select(nw.len().alias("rows")))
    return int(row["rows"])


@dataclass(frozen=True, eq=False)
class FrameGraph:
    """A graph in an engine: what `import_graph` would store, as two lazy frames.

    `nodes` has the columns node, class (`num_classes` for unlabelled nodes), number,
    and part and fold if they are asked for. `pairs` has source and target, each pair
    once; an undirected graph has every edge both ways.
    """

    engine: Engine
    nodes: LazyFrame
    pairs: LazyFrame
    node_rows: LazyFrame
    """The given node table with a column `NODE` of cleaned ids."""
    class_names: list[Hashable]
    directed: bool

    @property
    def num_classes(self) -> int:
        return len(self.class_names)

    def to_undirected(self) -> FrameGraph:
        if not self.directed:
            return self
        pairs = self.engine.keep(both_ways(self.pairs))
        return replace(self, pairs=pairs, directed=False)


@contextmanager
def open_frames(
    edges: Any,
    nodes: Any,
    columns: Columns,
    *,
    directed: bool,
    unknown: Literal["refuse", "drop"] = "refuse",
) -> Iterator[FrameGraph]:
    """Check and clean the tables of a graph; kept tables are dropped at the end."""
    with engine_errors("The graph"), ExitStack() as stack:
        engine = Engine(stack)
        edge_table = open_table(edges, "the table of edges")
        node_table = open_table(nodes, "the table of nodes")
        ids = clean_ids(edge_table, node_table, columns)
        classes, class_names = read_classes(node_table, columns.label)
        chosen = {"node": ids.node, "class": classes}
        if columns.split is not None:
            chosen["part"] = split_part(node_table, columns.split)
        if columns.fold is not None:
            chosen["fold"] = fold_numbers(node_table, columns.fold)
        frame = lazy(node_table).select(**chosen)
        check_ids(node_table, frame)
        known = engine.keep(with_numbers(frame, is_text=ids.are_text))
        pairs = lazy(edge_table).select(source=ids.source, target=ids.target)
        check_ends(edge_table, pairs)
        pairs = pairs.unique(["source", "target"])
        pairs = known_pairs(engine, edge_table, ids.ends, pairs, known, unknown)
        rows = lazy(node_table).with_columns(**{NODE: ids.node})
        graph = FrameGraph(engine, known, pairs, rows, class_names, directed=True)
        yield graph if directed else graph.to_undirected()


def open_table(frame: Any, what: str) -> FrameTable:
    """A table with distinct columns."""
    table = FrameTable.of(frame, what)
    with_distinct_columns(table)
    return table


def lazy(table: FrameTable) -> LazyFrame:
    """The lazy frame of a table."""
    return table.frame.lazy()


def both_ways(pairs: LazyFrame) -> LazyFrame:
    """Each pair in both directions, once."""
    return nw.concat([pairs, reverse(pairs)]).unique(["source", "target"])


def reverse(pairs: LazyFrame) -> LazyFrame:
    """Pairs with source and target swapped."""
    return pairs.select(source="target", target="source")


@dataclass(frozen=True, eq=False)
class IdColumns:
    """Cleaned ids of edges and nodes, as expressions of one type."""

    ends: EdgeColumns
    source: nw.Expr
    target: nw.Expr
    node: nw.Expr
    are_text: bool


def clean_ids(edges: FrameTable, nodes: FrameTable, columns: Columns) -> IdColumns:
    """The id columns of both tables; all are text where any is."""
    ends = edge_columns(edges, columns.source, columns.target, None)
    found = (
        clean_id(edges, ends.source, "source"),
        clean_id(edges, ends.target, "target"),
        clean_id(nodes, find_id_column(nodes, columns.id), "node"),
    )
    are_text = any(is_text for _, is_text in found)
    source, target, node = (
        one.cast(nw.String) if are_text else one for one, _ in found
    )
    return IdColumns(ends, source, target, node, are_text)


def clean_id(table: FrameTable, name: str, what: str) -> tuple[nw.Expr, bool]:
    """Ids as integers or stripped text, and whether they are text."""
    kind = table.frame.collect_schema()[name]
    if kind.is_integer():
        return col(name).cast(nw.Int64), False
    if kind.is_float():
        return whole_numbers(table, name, what), False
    if isinstance(kind, nw.String | nw.Categorical | nw.Enum):
        text = col(name).cast(nw.String).str.strip_chars(WHITESPACE)
        return when(text != lit("")).then(text), True
    raise UserError(
        f"{table.path}: the {what} '{name}' is of the type {kind}; ids are numbers or "
        "text."
    )


def whole_numbers(table: FrameTable, name: str, what: str) -> nw.Expr:
    """Floats as integers; raises for one that is missing, broken or rounded."""
    value = col(name)
    if collect(lazy(table).filter(value.is_null() | value.is_nan()).head(1)):
        raise UserError(f"{table.path}: a value of '{name}' is missing.")
    kind = table.frame.collect_schema()[name]
    limit = 2.0 ** (24 if kind == nw.Float32 else 53)
    whole = (value == value.round(0)) & (value < limit) & (value > -limit)
    if wrong := collect(lazy(table).filter(~whole).select(name).head(1)):
        number = wrong[0][name]
        fault = "is not an integer"
        if float(number).is_integer():
            fault = f"is too large for a {kind}, which rounds it"
        raise UserError(f"{table.path}: the {what} {number:g} {fault}.")
    return value.cast(nw.Int64)


def check_ids(table: FrameTable, nodes: LazyFrame) -> None:
    """Raise if a node id is missing or given twice."""
    if collect(nodes.filter(col("node").is_null()).select("node").head(1)):
        raise UserError(f"{table.path}: a node id is missing.")
    counts = nodes.group_by("node").agg(nw.len().alias("count"))
    repeated = collect(counts.filter(col("count") > 1).head(1))
    if repeated:
        raise UserError(
            f"{table.path}: the node id '{repeated[0]['node']}' is a duplicate."
        )


def check_ends(table: FrameTable, pairs: LazyFrame) -> None:
    """Raise if an edge lacks an end."""
    for end in ("source", "target"):
        if collect(pairs.filter(col(end).is_null()).select(end).head(1)):
            raise UserError(f"{table.path}: the {end} of an edge is missing.")


def known_pairs(
    engine: Engine,
    table: FrameTable,
    columns: EdgeColumns,
    pairs: LazyFrame,
    nodes: LazyFrame,
    unknown: Literal["refuse", "drop"],
) -> LazyFrame:
    """The pairs of known nodes; raises for others unless they are dropped."""
    ids = nodes.select("node")
    pairs = engine.keep(pairs)
    if unknown == "refuse":
        for end in ("source", "target"):
            other = pairs.join(ids, left_on=end, right_on="node", how="anti").head(1)
            if rows := collect(other):
                raise UserError(
                    f"{table.path}: the {end} '{rows[0][end]}' is not in the node "
                    "table; unknown='drop' leaves such edges out."
                )
        return pairs
    known = engine.keep(between(pairs, ids))
    total = count_rows(pairs)
    check_dropped(total - count_rows(known), total, columns)
    return known


def between(pairs: LazyFrame, nodes: LazyFrame) -> LazyFrame:
    """The pairs whose ends are both among some nodes."""
    for end in ("source", "target"):
        pairs = pairs.join(nodes, left_on=end, right_on="node", how="semi")
    return pairs


def read_classes(
    table: FrameTable, label: str | None
) -> tuple[nw.Expr, list[Hashable]]:
    """The class of each node, encoded as `import_graph` does, and names of classes."""
    if label is None:
        return lit(0).cast(nw.Int64), []
    require_column(table, label)
    distinct = lazy(table).select(label).unique(label).head(MAX_CLASSES + 1)
    values = distinct.collect("pyarrow").to_native()
    if len(values) > MAX_CLASSES:
        raise UserError(
            f"{table.path}: the label '{label}' has more than {MAX_CLASSES:,} values."
        )
    reader = LabelReader(label)
    for batch in FrameTable.of(values, str(table.path)).batches([label]):
        reader.add(batch)
    codes, class_names = reader.finish()
    names = zip(values[label].to_pylist(), codes.tolist(), strict=True)
    known = {name: int(code) for name, code in names if code >= 0}
    encoded = col(label).replace_strict(
        list(known),
        list(known.values()),
        default=lit(len(class_names)),
        return_dtype=nw.Int64,
    )
    return encoded.cast(nw.Int64), class_names


def split_part(table: FrameTable, split: str) -> nw.Expr:
    """The part of each node: train, valid or test, else null."""
    require_column(table, split)
    value = col(split).cast(nw.String).str.strip_chars(WHITESPACE).str.to_lowercase()
    rows = collect(lazy(table).select(part=value).unique("part").head(MAX_CLASSES))
    for part in (row["part"] for row in rows):
        if part and part not in SPLIT_NAMES:
            raise UserError(
                f"{table.path}: the split '{part}' is unknown; known are "
                f"{', '.join(SPLIT_NAMES)}."
            )
    names, parts = list(SPLIT_NAMES), list(SPLIT_NAMES.values())
    return value.replace_strict(
        names, parts, default=lit("none"), return_dtype=nw.String
    )


def fold_numbers(table: FrameTable, fold: str) -> nw.Expr:
    """The fold of each node; raises for one that is missing or not an integer."""
    kind = table.frame.collect_schema()[require_column(table, fold)]
    if kind.is_float():
        return whole_numbers(table, fold, "fold")
    if not (kind.is_integer() or kind == nw.Boolean):
        raise UserError(
            f"{table.path}: the fold '{fold}' is of the type {kind}; folds are "
            "integers."
        )
    if collect(lazy(table).filter(col(fold).is_null()).head(1)):
        raise UserError(f"{table.path}: a value of '{fold}' is missing.")
    return col(fold).cast(nw.Int64)


def with_numbers(nodes: LazyFrame, *, is_text: bool) -> LazyFrame:
    """Nodes with a number each: the id itself, or the rank of a text among all."""
    if is_text:
        ranked = nodes.with_row_index("number", order_by="node")
        return ranked.with_columns(col("number").cast(nw.Int64))
    return nodes.with_columns(number=col("node"))


def hashed(number: nw.Expr, prime: int = PRIMES[0], seed: int = 0) -> nw.Expr:
    """A pseudo-random integer below a prime for each number, a permutation of them.

    Three rounds of x -> (x + c)^3 mod p: products of two numbers fit into 64 bits.
    """
    value = number % prime
    for constant in ROUNDS:
        value = (value + (constant + seed) % prime) % prime
        value = value * value % prime * value % prime
    return value


def filled(names: Sequence[str]) -> list[nw.Expr]:
    """Columns of a left join, 0 where nothing was joined."""
    return [col(name).fill_null(0) for name in names]


def to_native(frame: LazyFrame, like: Any) -> Any:
    """A frame of the kind that was given: an eager one is computed."""
    given: Frame = nw.from_native(like)
    return (frame.collect() if isinstance(given, nw.DataFrame) else frame).to_native()
