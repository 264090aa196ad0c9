"""Measures in an engine are those of the graph that an import stores."""

import math

import numpy as np
import pyarrow as pa
import pytest
from engines import each_engine, frames, random_tables

from unalike import (
    ImportOptions,
    UserError,
    import_graph,
    measure,
    open_graph,
    warehouse,
)
from unalike.measures import Convention
from unalike.warehouse.measures import FRAME_MEASURES

CONVENTIONS = {
    "stored": Convention(),
    "loops": Convention(loops=1),
    "pairs": Convention(both_ways=True, loops=2),
    "unlabelled": Convention(unlabelled=True),
    "all": Convention(both_ways=True, unlabelled=True, loops=2),
}


def local(tables, folder, conventions, *, directed, unknown="refuse"):
    options = ImportOptions(
        label="kind", split="part", directed=directed, unknown=unknown
    )
    import_graph(*tables, out=folder, options=options)
    stored = open_graph(folder)
    return measure(
        stored.load(),
        conventions=conventions,
        splits=stored.splits(),
        only=FRAME_MEASURES,
    )


def same(found, expected):
    for name in found:
        assert np.allclose(
            found[name], expected[name], rtol=1e-9, atol=1e-9, equal_nan=True
        ), name


def in_engine(engine, tables, conventions, **options):
    edges, nodes = frames(engine, *tables)
    return warehouse.measure(
        edges, nodes, label="kind", split="part", conventions=conventions, **options
    )


@each_engine
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_an_engine_measures_what_the_stored_graph_has(engine, directed, tmp_path):
    tables = random_tables(int(directed), text=directed)
    for name, convention in CONVENTIONS.items():
        expected = local(tables, tmp_path / name, convention, directed=directed)
        found = in_engine(engine, tables, convention, directed=directed)
        assert {*found} >= {*FRAME_MEASURES}
        same(found, expected)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.long
def test_measures_of_random_graphs_are_the_same_in_duckdb(seed, tmp_path):
    from engines import ENGINES

    tables = random_tables(
        seed, text=seed % 2 == 0, nodes=10 + 4 * seed, classes=2 + seed
    )
    for directed in (False, True):
        folder = tmp_path / str(directed)
        expected = local(tables, folder, Convention(loops=1), directed=directed)
        found = in_engine(
            ENGINES["duckdb"], tables, Convention(loops=1), directed=directed
        )
        same(found, expected)


def test_edges_of_unknown_nodes_are_dropped_as_by_an_import(tmp_path):
    edges, nodes = random_tables(3)
    strange = pa.table(
        {"source": [99999, edges["source"][0].as_py()], "target": [1, -7]}
    )
    tables = pa.concat_tables([edges, strange]), nodes
    expected = local(
        tables, tmp_path / "g", Convention(), directed=True, unknown="drop"
    )
    found = warehouse.measure(
        *tables, label="kind", split="part", directed=True, unknown="drop"
    )
    same(found, expected)
    with pytest.raises(UserError, match="is not in the node table; unknown='drop'"):
        warehouse.measure(*tables, label="kind")


def test_integer_ids_match_the_same_ids_as_text(tmp_path):
    edges, nodes = random_tables(4)
    as_text = nodes.set_column(0, "id", nodes["id"].cast(pa.string()))
    same(
        warehouse.measure(edges, as_text, label="kind"),
        warehouse.measure(edges, nodes, label="kind"),
    )


def test_a_large_graph_samples_two_hop_homophily(monkeypatch):
    from unalike.warehouse import measures

    tables = random_tables(5, nodes=400, edges=1200)
    only = {"two_hop_node_homophily"}
    exact = warehouse.measure(*tables, label="kind", only=only)
    monkeypatch.setattr(measures, "MAX_EXACT_NODES", 100)
    monkeypatch.setattr(measures, "SAMPLE_SIZE", 150)
    found = warehouse.measure(*tables, label="kind", only=only)
    assert 0 < found["two_hop_node_homophily_standard_error"] < 0.05
    difference = found["two_hop_node_homophily"] - exact["two_hop_node_homophily"]
    assert abs(difference) < 4 * found["two_hop_node_homophily_standard_error"]


def test_a_result_is_shown_as_a_table():
    result = warehouse.measure(*random_tables(6), label="kind")
    text = str(result.summary())
    assert "40 nodes" in text and "features" not in text.splitlines()[0]


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"label": "kinds"}, "no column 'kinds'. Did you mean 'kind'?"),
        ({}, {"source": "from"}, "no column 'from'"),
        ({"id": [7] * 40}, {}, "the node id '7' is a duplicate"),
        ({"id": [None, *range(39)]}, {}, "a node id is missing"),
        ({"id": [0.5] * 40}, {}, "the node 0.5 is not an integer"),
        ({"id": [[1]] * 40}, {}, "ids are numbers or text"),
        ({"kind": pa.nulls(40, pa.string())}, {}, "no value at all"),
        ({"kind": ["same"] * 40}, {}, "one class only"),
        ({"kind": [0.5, 1.5] * 20}, {}, "is not an integer"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_faults_of_tables_are_one_line(change, options, message):
    edges, nodes = random_tables(7)
    columns = {name: nodes[name] for name in nodes.column_names} | change
    with pytest.raises(UserError) as error:
        warehouse.measure(edges, pa.table(columns), **{"label": "kind"} | options)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_an_engine_that_goes_away_is_one_line():
    import duckdb

    tables = random_tables(8)
    connection = duckdb.connect()
    for name, table in zip(("edges", "nodes"), tables, strict=True):
        connection.register("given", table)
        connection.execute(f"CREATE TABLE {name} AS FROM given")
    relations = connection.table("edges"), connection.table("nodes")
    connection.close()
    with pytest.raises(UserError) as error:
        warehouse.measure(*relations, label="kind")
    assert "\n" not in str(error.value)


def test_temporary_tables_of_duckdb_are_dropped():
    import duckdb

    connection = duckdb.connect()
    edges, nodes = random_tables(9)
    connection.register("edges", edges)
    connection.register("nodes", nodes)
    warehouse.measure(
        connection.table("edges"), connection.table("nodes"), label="kind"
    )
    assert not connection.execute("SELECT * FROM duckdb_tables()").fetchall()


def test_an_unknown_measure_is_named():
    with pytest.raises(UserError, match="No measure in an engine 'node_homophyly'"):
        warehouse.measure(*random_tables(0), label="kind", only=["node_homophyly"])
    assert math.isnan(
        warehouse.measure(*random_tables(0), label="kind")["duplicate_test_nodes"]
    )
