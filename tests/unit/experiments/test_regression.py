"""Numbers as labels: import, training, sweeps, saved models, and what needs classes."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from pyarrow.csv import read_csv
from sklearn.metrics import r2_score

from unalike import (
    Graph,
    ImportOptions,
    NodeClassifier,
    Training,
    UserError,
    advise,
    import_graph,
    load_model,
    measure,
    open_graph,
    run,
    save_graph,
)
from unalike.cli.main import main
from unalike.data.regression import R2, NumberScale, metric_of_task
from unalike.experiments.run import train_splits
from unalike.methods import METHODS

NODES = 200
SHORT = Training(epochs=60, lr=0.02)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A graph whose price follows a feature and the mean of its neighbours."""
    folder = tmp_path_factory.mktemp("regression")
    rng = np.random.default_rng(0)
    size, ends = rng.normal(size=NODES), rng.integers(0, NODES, (600, 2))
    price = 1000 + 300 * size - 5 * np.bincount(ends[:, 0], minlength=NODES)
    with (folder / "n.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "price", "size"])
        for node in range(NODES):
            shown = "" if node % 10 == 0 else f"{price[node]:.2f}"
            rows.writerow([f"n{node}", shown, f"{size[node]:.4f}"])
    lines = [f"n{u},n{v}" for u, v in ends]
    (folder / "e.csv").write_text("u,v\n" + "\n".join(lines) + "\n")
    tables = (folder / "e.csv", folder / "n.csv")
    options = ImportOptions(label="price", metric="r2")
    import_graph(*tables, out=folder / "g", options=options)
    np.save(folder / "price.npy", price)
    return folder


@pytest.fixture
def graph(folder):
    return open_graph(folder / "g")


def test_labels_are_positions_among_the_numbers(folder, graph):
    labels, price = graph.graph.labels, np.load(folder / "price.npy")
    known = labels >= 0
    values = graph.graph.label_values[labels[known]]
    assert np.allclose(values, price[known.numpy()], atol=0.006)
    assert int((~known).sum()) == NODES // 10
    assert graph.graph.num_classes == 1
    assert "different labels" in repr(graph.graph)
    assert main(["import", "--verify", str(folder / "g")]) == 0


def test_r2_is_that_of_scikit_learn(graph):
    labelled = (graph.graph.labels >= 0).nonzero()[:, 0]
    metric = metric_of_task(R2, graph.graph, labelled)
    scale = NumberScale.of(graph.graph, labelled)
    scores = torch.randn(NODES, 1, generator=torch.Generator().manual_seed(0))
    weight = (graph.graph.labels >= 0).float()
    found = metric.score(scores, graph.graph.labels, weight)
    true = graph.graph.label_values[graph.graph.labels[labelled]]
    expected = r2_score(true, scale.numbers(scores)[labelled])
    assert float(found) == pytest.approx(expected, abs=1e-5)
    loss = metric.loss(scores, graph.graph.labels, weight)
    error = ((true - scale.numbers(scores)[labelled]) / scale.std) ** 2
    assert float(loss) == pytest.approx(float(error.mean()), rel=1e-5)


@pytest.mark.parametrize("name", ["mlp", "linkx", "gcn", "sage", "glognn"])
def test_methods_learn_numbers(graph, name):
    results = run(graph, METHODS[name](training=SHORT), splits=[0, 1])
    assert [result.metric for result in results] == ["r2"] * 2
    assert results[0].answers is None
    assert results.mean > (60 if name == "mlp" else 20)


def test_the_error_is_printed_in_the_unit_of_the_label(folder, capsys):
    words = ["train", str(folder / "g"), "mlp", "--epochs", "60", "--lr", "0.02"]
    assert main([*words, "--splits", "0", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (error,) = document["root_mean_squared_errors"]
    (split,) = open_graph(folder / "g").splits()[:1]
    variance = np.load(folder / "price.npy")[split.test].var()
    r2 = document["splits"][0]["test"] / 100
    assert error == pytest.approx(np.sqrt((1 - r2) * variance), rel=1e-2)
    assert main([*words, "--splits", "0"]) == 0
    assert f"root mean squared error {error:.4g}" in capsys.readouterr().out


def test_test_numbers_are_not_seen(graph):
    output = train_splits(graph, METHODS["mlp"](training=SHORT), splits=[0, 1])
    for task, split in zip(
        output.experiment.tasks(output.method), graph.splits()[:2], strict=True
    ):
        assert (task.graph.labels[split.test] == -1).all()
    alone = [run(graph, output.method, splits=[number]) for number in (0, 1)]
    assert [one[0].test for one in alone] == [one.test for one in output.results]


def test_batches_of_rows_and_inductive_evaluation(folder, capsys):
    words = ["train", str(folder / "g"), "linkx", "--epochs", "20", "--splits", "0"]
    assert main([*words, "--inductive", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["metric"] == "r2"
    assert main([*words, "--json", "rows", "--size", "40"]) == 0
    assert json.loads(capsys.readouterr().out)["metric"] == "r2"


@pytest.mark.parametrize("more", [[], ["--no-refit"]])
def test_a_saved_model_predicts_numbers(folder, tmp_path, monkeypatch, capsys, more):
    monkeypatch.chdir(tmp_path)
    words = ["train", str(folder / "g"), "mlp", "--epochs", "100", "--lr", "0.02"]
    assert main([*words, "--splits", "0", "--save", "m.safetensors", *more]) == 0
    Path("e.csv").write_text("u,v\nnew,n1\n")
    Path("n.csv").write_text("id,size\nnew,1.0\nlow,-1.0\n")
    predict = ["predict", "m.safetensors", "--nodes", "n.csv", "--edges", "e.csv"]
    assert main([*predict, "--out", "new.csv"]) == 0
    new = read_csv("new.csv").to_pydict()
    assert new["id"] == ["new", "low"]
    assert 1100 < new["value"][0] < 1450
    assert 550 < new["value"][1] < 850
    known = ["predict", "m.safetensors", "--graph", str(folder / "g")]
    assert main([*known, "--out", "all.csv"]) == 0
    price = np.load(folder / "price.npy")
    values = np.array(read_csv("all.csv").to_pydict()["value"])
    assert r2_score(price[1::10], values[1::10]) > 0.6
    capsys.readouterr()
    assert main([*predict, "--explain"]) == 1
    assert "Explanations need classes" in capsys.readouterr().err
    prediction = load_model("m.safetensors").predict([(0, "n1")], np.zeros((1, 1)))
    assert prediction.numbers.shape == (1,)


def test_the_options_of_a_method_are_searched(folder, tmp_path, monkeypatch, capsys):
    pytest.importorskip("optuna")
    monkeypatch.chdir(tmp_path)
    words = ["tune", str(folder / "g"), "--trials", "2", "--device", "cpu", "mlp"]
    assert main([*words, "--epochs", "5"]) == 0
    assert "unalike train" in capsys.readouterr().out


def test_graphs_in_memory_have_targets(tmp_path):
    rng = np.random.default_rng(0)
    x, ends = rng.normal(size=(80, 2)), rng.integers(0, 80, (2, 200))
    targets = x[:, 0] * 7 - 3
    targets[::9] = np.nan
    graph = Graph.from_edges(*ends, features=x, targets=targets)
    (result,) = run(graph, METHODS["mlp"](training=SHORT), splits=[0])
    assert result.metric == "r2"
    assert result.test > 60
    again = save_graph(tmp_path / "g", graph)
    assert again.metric.name == "r2"
    assert torch.equal(again.graph.label_values, graph.label_values)
    adjacency = graph.adjacency.to_scipy()
    other = Graph.from_scipy(adjacency, features=x, targets=targets)
    assert torch.equal(other.labels, graph.labels)


NEEDS_CLASSES = {
    "measures": lambda graph: measure(graph.graph),
    "advice": advise,
    "classifier": lambda graph: NodeClassifier("mlp").fit(graph),
    "labels that spread": lambda graph: run(graph, METHODS["label-propagation"]()),
    "views": lambda graph: run(graph, METHODS["views"]()),
    "smoothing": lambda graph: run(graph, METHODS["correct-and-smooth"]()),
}


@pytest.mark.parametrize("name", NEEDS_CLASSES)
def test_what_needs_classes_is_refused(graph, name):
    with pytest.raises(UserError, match="needs classes; the label of this graph is a"):
        NEEDS_CLASSES[name](graph)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--metric", "accuracy"], "accuracy is for classes"),
        (["--class-weights", "balanced"], "--class-weights needs classes"),
        (["--label-inputs"], "--label-inputs needs classes"),
        (["--calibrate"], "Calibration needs classes"),
    ],
)
def test_options_for_classes_are_refused(folder, capsys, words, message):
    command = ["train", str(folder / "g"), "mlp", "--epochs", "2"]
    assert main([*command, *words]) == 1
    assert message in capsys.readouterr().err


def test_r2_of_classes_is_refused(capsys):
    assert main(["train", "chameleon-twin", "mlp", "--metric", "r2"]) == 1
    assert "r2 is for graphs whose label is a number" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["a", "b"], "the label 'y' is not a column of numbers"),
        (["1", "1"], "needs two different numbers"),
        (["inf", "1"], "the label 'y' is infinite"),
    ],
)
def test_labels_that_are_no_numbers_are_an_error(tmp_path, values, message):
    (tmp_path / "e.csv").write_text("u,v\n0,1\n")
    rows = "".join(f"{node},{value}\n" for node, value in enumerate(values))
    (tmp_path / "n.csv").write_text(f"id,y\n{rows}")
    options = ImportOptions(label="y", metric="r2")
    tables = (tmp_path / "e.csv", tmp_path / "n.csv")
    with pytest.raises(UserError, match=message):
        import_graph(*tables, out=tmp_path / "g", options=options)
