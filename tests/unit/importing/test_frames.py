"""Frames of every engine, DuckDB files and Parquet at URLs give the same graph."""

import json

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engines import each_engine, frames, random_tables

from unalike import ImportOptions, SqlQuery, UserError, import_graph, open_graph
from unalike.cli.main import main
from unalike.importing.frames import FrameTable

OPTIONS = ImportOptions(label="kind", split="part")


def arrays(folder):
    about = open_graph(folder).metadata["arrays"]
    return {name: one["sha256"] for name, one in about.items()}


@pytest.fixture
def tables():
    return random_tables(0)


@pytest.fixture
def expected(tables, tmp_path):
    import_graph(*tables, out=tmp_path / "expected", options=OPTIONS)
    return arrays(tmp_path / "expected")


@pytest.fixture
def file(tables, tmp_path):
    path = tmp_path / "shop.db"
    with duckdb.connect(path) as connection:
        for name, table in zip(("deals", "people"), tables, strict=True):
            connection.register("given", table)
            connection.execute(f"CREATE TABLE {name} AS FROM given")
    return path


@each_engine
def test_frames_of_every_engine_give_the_same_graph(engine, tables, expected, tmp_path):
    import_graph(*frames(engine, *tables), out=tmp_path / "g", options=OPTIONS)
    assert arrays(tmp_path / "g") == expected


def test_a_duckdb_file_is_imported_by_url_and_by_query(file, expected, tmp_path):
    words = ["import", f"duckdb:///{file}#deals", "--nodes", f"duckdb:///{file}#people"]
    words += ["--label", "kind", "--split", "part"]
    assert main([*words, "--out", str(tmp_path / "url")]) == 0
    queries = [SqlQuery(f"duckdb:///{file}", f"FROM {n}") for n in ("deals", "people")]
    import_graph(*queries, out=tmp_path / "query", options=OPTIONS)
    assert arrays(tmp_path / "url") == arrays(tmp_path / "query") == expected


def test_parquet_folders_at_urls_are_read_by_fsspec(tables, expected, tmp_path):
    import fsspec

    for name, table in zip(("deals", "people"), tables, strict=True):
        half = table.num_rows // 2
        for number, part in enumerate((table[:half], table[half:])):
            with fsspec.open(f"memory://shop/{name}/{number}.parquet", "wb") as out:
                pq.write_table(part, out)
    import_graph(
        "memory://shop/deals",
        "memory://shop/people/*.parquet",
        out=tmp_path / "g",
        options=OPTIONS,
    )
    assert arrays(tmp_path / "g") == expected


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ("duckdb:///{}", "names no table; write duckdb:///FILE#TABLE"),
        ("duckdb:///{}#absent", "absent"),
        ("duckdb:///none.db#deals", "There is no file none.db"),
        ("memory://nothing", "has no Parquet file"),
        ("unheard://of", "cannot be read"),
    ],
)
def test_mistakes_of_urls_are_one_line(file, tmp_path, edges, message):
    with pytest.raises(UserError) as error:
        import_graph(edges.format(file), out=tmp_path / "g")
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "g").exists()


def test_an_engine_that_fails_in_the_middle_leaves_nothing(tmp_path):
    with duckdb.connect() as connection:
        relation = connection.sql(
            "SELECT range AS source, CASE WHEN range < 200000 THEN 1 "
            "ELSE error('the disk is gone') END AS target FROM range(300000)"
        )
        with pytest.raises(UserError, match="the disk is gone"):
            import_graph(relation, out=tmp_path / "g")
    assert not list(tmp_path.iterdir())


def test_a_lazy_frame_is_streamed_in_batches():
    with duckdb.connect() as connection:
        relation = connection.sql("SELECT range AS a, 1 AS b FROM range(500000)")
        sizes = [len(batch) for batch in FrameTable.of(relation, "t").batches(["a"])]
    assert sum(sizes) == 500_000
    assert max(sizes) <= 1 << 17


def test_nodes_of_a_query_without_an_order_keep_their_features(tmp_path):
    """Every run of this query has another order."""
    table = pa.table(
        {
            "id": range(500),
            "kind": ["a", "b"] * 250,
            "x": [float(n) for n in range(500)],
        }
    )
    with duckdb.connect() as connection:
        connection.register("given", table)
        nodes = connection.sql("FROM given ORDER BY random()")
        edges = pa.table({"source": range(499), "target": range(1, 500)})
        options = ImportOptions(label="kind", scale="none")
        summary = import_graph(edges, nodes, out=tmp_path / "g", options=options)
    stored = open_graph(tmp_path / "g")
    values = stored.load().features[:, 0].tolist()
    assert values == [float(name) for name in stored.names.to_pylist()]
    assert json.loads(json.dumps(summary.to_dict()))["nodes"] == 500


def test_a_sparse_column_of_pandas_is_an_error_of_one_line(tmp_path):
    edges = pd.DataFrame({"source": [0, 1], "target": [1, 2]})
    column = pd.arrays.SparseArray([0.0, 0.0, 1.0])
    nodes = pd.DataFrame({"id": [0, 1, 2], "x": column})
    with pytest.raises(UserError, match=r"cannot be read: Sparse pandas data .*\.$"):
        import_graph(edges, nodes, out=tmp_path / "graph")
    assert not (tmp_path / "graph").exists()
