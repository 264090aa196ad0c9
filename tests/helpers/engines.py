"""The same tables in every engine: pandas, polars, PyArrow, DuckDB and Spark."""

import functools
import itertools
import os
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest


@functools.cache
def duckdb_connection():
    import duckdb

    return duckdb.connect(config={"threads": 1})


def duckdb_relation(table):
    connection, name = duckdb_connection(), f"t{next(NUMBERS)}"
    connection.register("given", table)
    connection.execute(f"CREATE TABLE {name} AS FROM given")
    return connection.table(name)


NUMBERS = itertools.count()


def polars_frame(table):
    import polars

    return polars.from_arrow(table)


@functools.cache
def spark_session():
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

    builder = SparkSession.builder.master("local[2]")
    builder = builder.config("spark.ui.enabled", "false").config(
        "spark.ui.showConsoleProgress", "false"
    )
    # The tables that all tests persist share one process.
    builder = builder.config("spark.driver.memory", "4g")
    builder = builder.config("spark.sql.shuffle.partitions", "2")
    return builder.config("spark.log.level", "ERROR").getOrCreate()


def spark_frame(table):
    names = [
        f"{n} {SPARK_TYPES[str(t)]}"
        for n, t in zip(table.column_names, table.schema.types, strict=True)
    ]
    rows = [tuple(row.values()) for row in table.to_pylist()]
    return spark_session().createDataFrame(rows, ", ".join(names))


SPARK_TYPES = {
    "int64": "long",
    "string": "string",
    "large_string": "string",
    "double": "double",
}

ENGINES = {
    "pandas": pa.Table.to_pandas,
    "polars": polars_frame,
    "polars-lazy": lambda table: polars_frame(table).lazy(),
    "pyarrow": lambda table: table,
    "duckdb": duckdb_relation,
    "spark": spark_frame,
}
"""From an Arrow table to the frame of an engine."""

each_engine = pytest.mark.parametrize(
    "engine",
    [
        pytest.param(frame, id=name, marks=[pytest.mark.spark] * (name == "spark"))
        for name, frame in ENGINES.items()
    ],
)


def random_tables(seed, *, text=False, nodes=40, edges=200, classes=3):
    """Edges with duplicates and self-loops, and nodes with missing labels, sorted."""
    rng = np.random.default_rng(seed)
    ids = np.sort(rng.choice(1000, nodes, replace=False)) - 100
    ends = rng.choice(ids[: nodes - 2], (2, edges))
    ends[:, -3:] = ends[:, :3]
    ends[1, :4] = ends[0, :4]
    labels = [
        f"class {n}" if n < classes else None
        for n in rng.integers(0, classes + 1, nodes)
    ]
    parts = rng.choice(["train", "valid", "test", ""], nodes).tolist()
    names = [f"n{one + 200:04}" for one in ids] if text else ids.tolist()
    number = dict(zip(ids.tolist(), names, strict=True))
    source, target = ([number[one] for one in side.tolist()] for side in ends)
    features = rng.integers(0, 5, (2, nodes)).astype(float)
    return (
        pa.table({"source": source, "target": target}),
        pa.table(
            {
                "id": names,
                "kind": labels,
                "part": parts,
                "x": features[0],
                "y": features[1],
            }
        ),
    )


def frames(engine, *tables):
    """The tables in an engine."""
    return [engine(table) for table in tables]


def as_arrow(frame):
    """An Arrow table of a frame of any engine."""
    import narwhals as nw

    return nw.from_native(frame).lazy().collect("pyarrow").to_native()


def as_pandas(frame, index):
    """A frame of any engine as pandas, sorted by a column."""
    rows = pd.DataFrame(as_arrow(frame).to_pydict())
    return rows.set_index(index).sort_index()
