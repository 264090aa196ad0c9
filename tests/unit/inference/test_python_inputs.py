"""Graphs from lists, DataFrames, folders and databases, in Python and by commands."""

import json
import sqlite3

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
import torch
from graphs import suiting
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import unalike
from unalike import (
    LINK,
    LINKX,
    MLP,
    Graph,
    ImportOptions,
    LabelPropagation,
    NodeClassifier,
    RunOptions,
    SqlQuery,
    Training,
    UserError,
    import_graph,
    load_model,
    open_graph,
    random_splits,
    save_graph,
)
from unalike.cli.main import main

EDGES = {"buyer": ["ann", "bob", "cid", "dan"], "seller": ["bob", "cid", "dan", "ann"]}
PEOPLE = {
    "id": ["ann", "bob", "cid", "dan"],
    "kind": ["good", "fraud", "good", None],
    "age": [31, 25, None, 29],
}


def quick(kind=LINKX, **options):
    return kind(training=Training(epochs=10, lr=0.05), **options)


def arrays(stored):
    return {name: one["sha256"] for name, one in stored.metadata["arrays"].items()}


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as connection:
        pd.DataFrame(EDGES).to_sql("deals", connection, index=False)
        pd.DataFrame(PEOPLE).to_sql("people", connection, index=False)
    connection.close()
    return path


def test_files_dataframes_and_queries_give_the_same_graph(tmp_path, database):
    edges, people = pd.DataFrame(EDGES), pd.DataFrame(PEOPLE)
    edges.to_csv(tmp_path / "edges.csv", index=False)
    people.to_csv(tmp_path / "people.csv", index=False)
    connection = sqlite3.connect(database)
    inputs = [
        (str(tmp_path / "edges.csv"), tmp_path / "people.csv"),
        (edges, people),
        (pa.table(EDGES), [pa.table(PEOPLE)]),
        tuple(
            SqlQuery(f"sqlite:///{database}", f"SELECT * FROM {name}")
            for name in ("deals", "people")
        ),
        tuple(
            SqlQuery(connection, f"SELECT * FROM {name}")
            for name in ("deals", "people")
        ),
    ]
    found = []
    for number, (edge_table, node_table) in enumerate(inputs):
        out, options = tmp_path / str(number), ImportOptions(label="kind")
        import_graph(edge_table, node_table, out=out, options=options)
        found.append(arrays(open_graph(out)))
    assert found == [found[0]] * len(inputs)


def test_a_database_is_imported_by_the_command(tmp_path, database, capsys):
    out = str(tmp_path / "shop")
    queries = ["--edges-query", "SELECT buyer, seller FROM deals"]
    queries += ["--nodes-query", "SELECT id, kind, age FROM people"]
    words = ["import", f"sqlite:///{database}", *queries, "--label", "kind"]
    assert main([*words, "--out", out, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["nodes"] == 4
    assert open_graph(out).metadata["class_names"] == ["fraud", "good"]


@pytest.mark.parametrize(
    ("url", "query", "message"),
    [
        ("sqlite:///{}", "SELECT * FROM absent", "fails: no such table: absent."),
        ("sqlite:///missing.db", "SELECT 1", "There is no file missing.db."),
        ("mysql://x", "SELECT 1", "'mysql://x' is no sqlite:///FILE"),
    ],
)
def test_mistakes_of_queries_are_one_line(database, tmp_path, url, query, message):
    with pytest.raises(UserError) as error:
        import_graph(SqlQuery(url.format(database), query), out=tmp_path / "out")
    assert message in str(error.value)


def test_a_query_needs_a_database(capsys):
    words = ["import", "a.csv", "b.csv", "--edges-query", "SELECT 1", "--out", "x"]
    assert main(words) == 1
    assert "sqlite:///FILE --edges-query" in capsys.readouterr().err


@pytest.mark.parametrize(
    "convert", [list, np.array, pd.Series, torch.tensor], ids=lambda one: one.__name__
)
def test_edges_are_lists_arrays_series_or_tensors(convert):
    graph = Graph.from_edges(convert([0, 1, 2]), convert([1, 2, 3]))
    assert (graph.num_nodes, graph.num_edges) == (4, 3)


def test_text_as_ids_is_refused():
    with pytest.raises(UserError, match="import_graph takes ids of any kind"):
        Graph.from_edges(["a"], ["b"])


def ring(nodes):
    near = scipy.sparse.eye_array(nodes, k=1) + scipy.sparse.eye_array(nodes, k=-1)
    return near.tocsr()


def test_dataframes_and_labels_of_text_become_a_graph():
    frame = pd.DataFrame({"age": [3, 4, 5, 6], "height": [0.5, 1, 2, 3]})
    labels = pd.Series(["b", pd.NA, "a", "b"], dtype="string")
    graph = Graph.from_scipy(ring(4), features=frame, labels=labels)
    assert graph.features.tolist() == frame.to_numpy().tolist()
    assert graph.labels.tolist() == [1, -1, 0, 1]
    assert graph.class_names == ["a", "b"]
    with pytest.raises(
        UserError, match="column 'city' of the features has values that"
    ):
        Graph.from_scipy(ring(2), features=pd.DataFrame({"city": ["Rome", "Oslo"]}))
    with pytest.raises(UserError, match="column 'age' of the features has missing"):
        Graph.from_scipy(ring(2), features=pd.DataFrame({"age": [1.0, None]}))


def test_labels_with_fractions_are_refused():
    with pytest.raises(UserError, match="numbers with fractions"):
        Graph.from_scipy(ring(3), labels=[0.5, 1.0, 2.0])
    graph = Graph.from_scipy(ring(3), labels=[0.0, float("nan"), 2.0])
    assert graph.labels.tolist() == [0, -1, 2]


def test_minus_one_is_a_class_with_another_marker():
    labels = np.array([-1, 1, 0, -1])
    graph = Graph.from_scipy(ring(4), labels=labels, unlabelled=0)
    assert graph.labels.tolist() == [0, 1, -1, 0]
    assert graph.class_names == [-1, 1]
    assert Graph.from_scipy(ring(4), labels=labels).labels.tolist() == [-1, 1, 0, -1]


def test_class_names_survive_saving(tmp_path):
    graph = Graph.from_scipy(ring(4), labels=["x", "y", "x", None])
    stored = save_graph(str(tmp_path / "g"), graph)
    assert open_graph(str(tmp_path / "g")).graph.class_names == ["x", "y"]
    assert stored.metadata["class_names"] == ["x", "y"]


def test_a_graph_a_folder_and_a_stored_graph_train_alike(tmp_path):
    graph = suiting(nodes=60)
    stored = save_graph(
        tmp_path / "g", graph, splits=random_splits(graph.labels, count=5)
    )
    sources = (graph, tmp_path / "g", str(tmp_path / "g"), stored)
    found = [
        [one.test for one in unalike.run(source, quick(hidden=4), splits=[0, 1])]
        for source in sources
    ]
    assert found == [found[0]] * 4


def test_a_method_is_given_by_its_name_or_class():
    graph = suiting(nodes=60)
    scores = [
        unalike.run(graph, method, splits=[0])[0].test
        for method in (LabelPropagation(), LabelPropagation, "label-propagation")
    ]
    assert scores == [scores[0]] * 3
    with pytest.raises(UserError, match=r"No method 'linx'\. Did you mean 'linkx'"):
        unalike.run(graph, "linx")


def test_advice_takes_a_graph(tmp_path):
    advice = unalike.advise(suiting(nodes=60), seconds=5.0)
    assert advice.ranking


def test_a_model_is_saved_from_python(tmp_path):
    path = str(tmp_path / "model.safetensors")
    options = RunOptions(model=path)
    runs = unalike.run(suiting(nodes=60), quick(LINK), splits=[0], options=options)
    assert load_model(path).graph_info.num_known == 60
    assert repr(runs).startswith("Runs(1: accuracy ")
    assert "command" not in runs[0].summary().note


def test_short_reprs(tmp_path):
    graph = suiting(nodes=60)
    stored = save_graph(tmp_path / "g", graph)
    (split,) = random_splits(graph.labels, count=1)
    task = unalike.Task.from_split(graph, split, unalike.METRICS["accuracy"])
    solution = quick(LINK).solve(task)
    (result,) = unalike.run(graph, quick(LINK), splits=[0])
    for one in (graph, stored, split, task, solution, result):
        assert len(repr(one)) < 200, repr(one)


def test_a_classifier_keeps_ids_class_names_and_columns_of_a_stored_graph(tmp_path):
    people = pd.DataFrame(
        {
            "id": [f"p{number}" for number in range(40)],
            "kind": ["good", "fraud"] * 20,
            "age": range(40),
        }
    )
    ids = people["id"]
    edges = pd.DataFrame({"source": ids, "target": ids.shift(1, fill_value="p39")})
    options = ImportOptions(label="kind")
    import_graph(edges, people, out=tmp_path / "g", options=options)
    classifier = NodeClassifier(quick(hidden=4)).fit(open_graph(tmp_path / "g"))
    assert set(classifier.predict()) <= {"good", "fraud"}
    model = classifier.model_
    assert model.known_names[3].as_py() == "p3"
    assert model.classes == ["fraud", "good"]
    assert model.encoder.names == ["age"]
    assert classifier.predict_proba(str(tmp_path / "g")).shape == (40, 2)


def test_the_scaler_of_a_pipeline_reaches_the_features():
    graph = suiting(nodes=80)
    x = graph.features.numpy() * 1000 + 5
    y = np.where(graph.labels < 0, 0, 2 * graph.labels - 1)
    method = quick(MLP, hidden=8)
    pipeline = make_pipeline(StandardScaler(), NodeClassifier(method, unlabelled=0))
    adjacency = graph.adjacency.to_scipy()
    pipeline.fit(x, y, nodeclassifier__adjacency=adjacency)
    scaled = StandardScaler().fit_transform(x)
    direct = NodeClassifier(method, unlabelled=0).fit(adjacency, y, features=scaled)
    assert np.allclose(pipeline.predict_proba(x), direct.predict_proba(), atol=1e-5)
    assert set(pipeline.predict(x)) <= {-1, 1}
    known = y != 0
    score = direct.score(adjacency, np.where(known, y, 9), known, features=scaled)
    assert score == pytest.approx((direct.predict() == y)[known].mean())
