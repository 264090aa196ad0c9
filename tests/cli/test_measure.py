"""`unalike measure` on stored graphs."""

import json
from dataclasses import replace

import pytest
import torch

from unalike import DATASETS, MEASURES, Graph, datasets, save_graph
from unalike.cli.main import main
from unalike.datasets.base import Counts, Published


@pytest.fixture
def stored(tmp_path):
    graph = Graph.from_edges(
        torch.tensor([0, 0, 1, 2]),
        torch.tensor([0, 1, 2, 3]),
        num_nodes=5,
        labels=torch.tensor([0, 0, 1, 1, 2]),
        directed=True,
    )
    save_graph(tmp_path / "texas", graph)
    return str(tmp_path / "texas")


def test_json_has_counts_and_every_measure(stored, capsys):
    assert main(["measure", stored, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    counts = {"num_nodes": 5, "num_edges": 4, "num_features": 0, "num_classes": 3}
    assert counts.items() <= result.items()
    assert set(MEASURES) <= set(result)
    assert result["edge_homophily"] == pytest.approx(2 / 3)
    assert result["compatibility"][2] == [None, None, None]
    assert result["unbiased_homophily"] is None


def test_the_table_has_interpretations(stored, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["measure", stored]) == 0
    out = capsys.readouterr().out
    assert "texas: 5 nodes, 4 directed edges, 0 features, 3 classes, 1 self-loop" in out
    assert "67% of edges join equal labels" in out
    assert "from \\ to" in out


def test_the_paper_convention_depends_on_the_dataset_name(stored, capsys):
    arguments = ["--only", "edge-homophily", "--convention", "paper", "--json"]
    assert main(["measure", stored, *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["edge_homophily"] == pytest.approx(3 / 4)


def test_several_datasets_are_columns_of_one_table(stored, tmp_path, capsys):
    other = tmp_path / "other"
    save_graph(other, datasets.find(stored).load().to_undirected())
    assert main(["measure", stored, str(other), "--bootstrap", "5", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert set(result) == {"texas", "other"}
    assert set(result["other"]["intervals"]) < set(MEASURES)
    assert main(["measure", stored, str(other), "--bootstrap", "5"]) == 0
    assert "other" in capsys.readouterr().out.splitlines()[3]


def test_the_published_value_and_the_difference_are_shown(
    stored, tmp_path, capsys, monkeypatch
):
    graph = datasets.find(stored).load()
    published = Published(edge_homophily=0.11, class_homophily=0.0)
    lacking = Counts(5, 4, 7, 3)
    texas = replace(DATASETS["texas"], files=(), read=lambda root: graph)
    with_paper = replace(
        texas, published=published, counts=lacking, data=tmp_path / "data"
    )
    monkeypatch.setattr(datasets, "find", lambda name, data=None: with_paper)
    monkeypatch.setenv("COLUMNS", "140")
    only = ["edge_homophily", "class_homophily", "node_homophily"]
    assert main(["measure", "texas", "--only", *only]) == 0
    out, err = capsys.readouterr()
    assert err.startswith("note: texas is without its 7 features")
    assert "0.667  0.110      +0.557" in out
    assert "0.350  0.000      +0.350" in out


def test_a_large_matrix_is_only_in_json(tmp_path, capsys):
    nodes = torch.arange(20)
    graph = Graph.from_edges(nodes, nodes.flip(0), num_nodes=20, labels=nodes)
    save_graph(tmp_path / "large", graph)
    assert main(["measure", str(tmp_path / "large")]) == 0
    assert "The 20 x 20 compatibility: see --json." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "nowhere"),
        (["{}", "--only", "edge_homophly"], "Did you mean 'edge_homophily'"),
        (["{}", "--convention", "papr"], "Did you mean 'paper'"),
        (["{}", "--bootstrap", "-1"], "give 0 to 100000"),
        ([], "Name a dataset"),
    ],
)
def test_errors_have_one_line(stored, capsys, arguments, words):
    assert main(["measure", *(given.format(stored) for given in arguments)]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert words in error
