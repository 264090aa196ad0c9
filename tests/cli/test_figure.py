"""`unalike figure` on stored graphs and without any."""

import json

import pytest
import torch

from unalike import Graph, UserError, datasets, save_graph
from unalike.cli.main import main


@pytest.fixture
def stored(tmp_path):
    graph = Graph.from_edges(
        torch.tensor([0, 1]),
        torch.tensor([1, 2]),
        num_nodes=3,
        labels=torch.tensor([0, 0, 1]),
    )
    save_graph(tmp_path / "small", graph)
    return str(tmp_path / "small")


def test_a_figure_of_named_datasets(stored, tmp_path, capsys):
    out = tmp_path / "figure.svg"
    assert main(["figure", "compatibility", stored, "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "figure": "compatibility",
        "file": str(out),
        "datasets": ["small"],
        "missing": [],
    }
    assert out.stat().st_size > 1000


def test_the_usual_datasets_that_are_there(stored, tmp_path, capsys, monkeypatch):
    known = datasets.find(stored)

    def find(name, data=None):
        if name != "genius":
            raise UserError(f"No files of {name}.")
        return known

    monkeypatch.setattr(datasets, "find", find)
    assert main(["figure", "degrees", "--out", str(tmp_path / "figure.png")]) == 0
    spoken = capsys.readouterr()
    assert "left out, no data: penn94, pokec" in spoken.err
    assert "wrote" in spoken.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["degree"], "Did you mean 'degrees'"),
        (["examples", "texas"], "without datasets"),
        (["degrees", "nowhere"], "nowhere"),
    ],
)
def test_mistakes_give_an_error_of_one_line(tmp_path, capsys, arguments, words):
    out = ["--out", str(tmp_path / "figure.png")]
    assert main(["figure", *arguments, *out]) == 1
    assert words in capsys.readouterr().err
    assert not (tmp_path / "figure.png").exists()


def test_no_data_at_all_is_a_mistake(tmp_path, capsys, monkeypatch):
    def find(name, data=None):
        raise UserError(f"No files of {name}.")

    monkeypatch.setattr(datasets, "find", find)
    assert main(["figure", "degrees", "--out", str(tmp_path / "figure.png")]) == 1
    assert "name datasets you have" in capsys.readouterr().err
