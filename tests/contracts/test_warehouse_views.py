"""Views in an engine are those of the package `views`, and leak as little."""

import numpy as np
import pyarrow as pa
import pytest
import torch
from engines import as_pandas, each_engine, frames, random_tables

from unalike import ImportOptions, Task, UserError, import_graph, open_graph, warehouse
from unalike.data.metrics import ACCURACY
from unalike.views.folds import Folds
from unalike.views.table import SharedViews, ViewTable


def local_views(tables, folder, directed):
    options = ImportOptions(
        label="kind", split="part", directed=directed, ignore=("fold",)
    )
    import_graph(*tables, out=folder, options=options)
    stored = open_graph(folder)
    graph, [split] = stored.load(), stored.splits()
    task = Task(graph, split.train, torch.arange(0), ACCURACY)
    folds = Folds(torch.tensor(tables[1]["fold"].to_pylist()), 2)
    shared = SharedViews.of(graph, ("structure", "labels"), 2)
    table = ViewTable.of(shared, task, folds)
    rows = table.rows(torch.arange(graph.num_nodes)).numpy()
    return dict(zip(table.column_names(), rows.T, strict=True)), graph.class_names


def with_folds(tables):
    edges, nodes = tables
    folds = [row % 4 for row in range(nodes.num_rows)]
    return edges, nodes.append_column("fold", pa.array(folds))


def structure_without_pagerank_and_triangles(columns, directed):
    values = [v for name, v in columns.items() if name.startswith("structure:")][:-2]
    start = 5 if directed else 2
    size = 10 if directed else 6
    ranks = {start + size * step for step in range(1 + directed)}
    return [value for number, value in enumerate(values) if number not in ranks]


@each_engine
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_an_engine_makes_the_columns_of_local_views(engine, directed, tmp_path):
    tables = with_folds(random_tables(11 + directed))
    expected, classes = local_views(tables, tmp_path / "g", directed)
    edges, nodes = frames(engine, *tables)
    found = warehouse.views(
        edges, nodes, label="kind", split="part", fold="fold", directed=directed
    )
    rows = as_pandas(found, "node")
    for name, value in expected.items():
        if name.startswith("labels:"):
            for number, class_name in enumerate(classes):
                name = (
                    name.removesuffix(f"_{number}") + f"_{class_name}"
                    if name.endswith(f"_{number}")
                    else name
                )
            assert np.allclose(rows[name], value, atol=1e-5), name
    structure = structure_without_pagerank_and_triangles(expected, directed)
    own = [name for name in rows.columns if name.startswith("structure:")]
    assert len(own) == len(structure)
    for name in own:
        assert any(np.allclose(rows[name], value, atol=2e-3) for value in structure), (
            name
        )


def changed(nodes, row, label):
    labels = nodes["kind"].to_pylist()
    labels[row] = label
    column = nodes.column_names.index("kind")
    return nodes.set_column(column, "kind", pa.array(labels, pa.string()))


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("seed", range(4))
def test_a_label_does_not_change_its_own_row(seed, directed):
    edges, nodes = random_tables(seed, nodes=25, edges=150)
    row = 3
    rows = []
    for label in ("class 0", "class 1", None):
        table = warehouse.views(
            edges, changed(nodes, row, label), label="kind", directed=directed, folds=3
        )
        rows.append(as_pandas(table, "node").loc[nodes["id"][row].as_py()])
    # An engine sums in an order of its own, so that last bits may differ by chance.
    assert np.allclose(rows[0], rows[1], rtol=0, atol=1e-14)
    assert np.allclose(rows[0], rows[2], rtol=0, atol=1e-14)


def test_labels_outside_train_change_no_row():
    edges, nodes = random_tables(5)
    parts = nodes["part"].to_pylist()
    row = parts.index("test")
    tables = [
        as_pandas(
            warehouse.views(
                edges, changed(nodes, row, label), label="kind", split="part"
            ),
            "node",
        )
        for label in ("class 0", "class 1")
    ]
    assert np.allclose(tables[0], tables[1], rtol=0, atol=1e-14)


def test_the_label_of_a_train_node_changes_rows_of_other_folds():
    edges, nodes = random_tables(6)
    row = nodes["part"].to_pylist().index("train")
    tables = [
        as_pandas(
            warehouse.views(
                edges, changed(nodes, row, label), label="kind", split="part"
            ),
            "node",
        )
        for label in ("class 0", "class 1")
    ]
    assert not np.allclose(tables[0], tables[1])


def test_more_than_two_steps_are_refused():
    with pytest.raises(UserError, match="hops is 3"):
        warehouse.views(*random_tables(0), label="kind", hops=3)
