"""Odd DataFrames, queries and damaged Parquet files: a graph, or one line."""

import contextlib
import datetime
import decimal
import shutil
import sqlite3

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from damage import damage

from unalike import ImportOptions, UserError, import_graph, open_graph
from unalike.importing.sql import SqlQuery

ROWS = 8
IDS = [f"p{number}" for number in range(ROWS)]
EDGES = pd.DataFrame({"source": IDS, "target": [*IDS[3:], *IDS[:3]]})
ODD = [None, True, -1, 2**63 - 1, 2**70, 1e308, 1e999, float("nan"), "", "x", "\x00"]
ODD += [" p1", b"x", "p1", [1.0, 2.0], [1.0], [], [None], {}, {"a": 1}, ("x",)]
ODD += [datetime.date(1, 1, 1), datetime.timedelta(1), decimal.Decimal("1e50"), 1j]
ODD += [datetime.datetime.now(datetime.UTC), np.float16(1), pd.NaT, pd.NA, "\ud800"]
CASTS = ["object", "category", "string", "Int64", "float32", "float16", "boolean"]
CASTS += ["datetime64[ns]", "timedelta64[s]", "uint64", "Sparse[float]", "complex64"]


def columns(rng) -> dict[str, list]:
    """Columns of a node table, some of their values odd."""
    table = {
        "id": [*IDS],
        "label": ["a", "b"] * (ROWS // 2),
        "number": [*range(ROWS)],
        "vector": [[1.0, float(number)] for number in range(ROWS)],
    }
    for _ in range(rng.randrange(1, 4)):
        name = rng.choice(list(table))
        for row in rng.sample(range(ROWS), rng.choice([1, ROWS])):
            table[name][row] = rng.choice(ODD)
    return table


def imported(edges, nodes, out) -> None:
    """Import two tables and open the graph; an error has one line."""
    try:
        import_graph(edges, nodes, out=out, options=ImportOptions(label="label"))
        assert open_graph(out).graph.num_nodes == ROWS
    except UserError as error:
        assert "\n" not in str(error)
    shutil.rmtree(out, ignore_errors=True)


@pytest.mark.filterwarnings("ignore")
def test_odd_dataframes_end_in_a_graph_or_an_error_of_one_line(tmp_path, some):
    for rng in some:
        table = pd.DataFrame(columns(rng), dtype=object)
        if rng.random() < 0.5:
            with contextlib.suppress(Exception):
                name = rng.choice(list(table))
                table[name] = table[name].astype(rng.choice(CASTS))
        if rng.random() < 0.1:
            table = table.rename(columns={"number": rng.choice([None, 7, "", "id"])})
        imported(EDGES, table, tmp_path / "graph")


def test_odd_queries_end_in_a_graph_or_an_error_of_one_line(tmp_path, some):
    path = tmp_path / "tables.db"
    connection = sqlite3.connect(path)
    EDGES.to_sql("edges", connection, index=False)
    connection.close()
    edges = SqlQuery(f"sqlite:///{path}", "SELECT * FROM edges")
    whole = path.read_bytes()
    for rng in some:
        path.write_bytes(whole)
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE nodes (id, label, number)")
        for row in zip(*[*columns(rng).values()][:3], strict=True):
            with contextlib.suppress(Exception):
                connection.execute("INSERT INTO nodes VALUES (?, ?, ?)", row)
        connection.commit()
        connection.close()
        if rng.random() < 0.5:
            path.write_bytes(damage(path.read_bytes(), rng))
        nodes = SqlQuery(f"sqlite:///{path}", "SELECT * FROM nodes")
        imported(edges, nodes, tmp_path / "graph")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, label, CAST(x'ff' AS TEXT) AS number FROM nodes",
        "SELECT id, label, abs(-9223372036854775807 - number) FROM nodes",
    ],
)
def test_a_query_that_fails_while_it_is_read_is_an_error_of_one_line(tmp_path, query):
    connection = sqlite3.connect(tmp_path / "tables.db")
    rows = zip(IDS, "ab" * (ROWS // 2), range(ROWS), strict=True)
    connection.execute("CREATE TABLE nodes (id, label, number)")
    connection.executemany("INSERT INTO nodes VALUES (?, ?, ?)", rows)
    connection.commit()
    with pytest.raises(UserError, match=r"The query .* fails"):
        import_graph(EDGES, SqlQuery(connection, query), out=tmp_path / "graph")
    connection.close()


@pytest.mark.parametrize("suffix", ["parquet", "csv.gz"])
def test_damaged_files_end_in_a_graph_or_an_error_of_one_line(tmp_path, suffix, some):
    path = tmp_path / f"nodes.{suffix}"
    table = pd.DataFrame(
        {"id": IDS, "label": ["a", "b"] * (ROWS // 2), "number": range(ROWS)}
    )
    if suffix == "parquet":
        pq.write_table(pa.Table.from_pandas(table), path, compression="zstd")
    else:
        table.to_csv(path, index=False)
    whole = path.read_bytes()
    for rng in some:
        path.write_bytes(damage(whole, rng))
        imported(EDGES, path, tmp_path / "graph")
