"""`unalike advise`: what it prints, and the command it gives."""

import json
from dataclasses import replace

import pytest
from graphs import suiting

from unalike import random_splits, save_graph
from unalike.advice import recommend as advising
from unalike.advice.trials import LIMITS
from unalike.cli.main import main


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Few epochs and draws, and the questions alone."""
    monkeypatch.setattr(advising, "SHORT_EPOCHS", 10)
    monkeypatch.setitem(LIMITS, "cpu", replace(LIMITS["cpu"], max_folds=2))
    monkeypatch.setattr(advising, "SEPARATE_EGO", [])
    monkeypatch.setattr(advising, "MIXED_EGO", [])
    monkeypatch.setattr(advising, "FINALISTS", 0)


@pytest.fixture
def stored(tmp_path):
    graph = suiting(nodes=150)
    splits = random_splits(graph.labels, count=1)
    save_graph(tmp_path / "my graph", graph, splits=splits)
    return str(tmp_path / "my graph")


@pytest.mark.long
def test_text_tells_what_to_run(stored, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["advise", stored]) == 0
    out = capsys.readouterr().out
    assert "my graph: 150 nodes" in out
    assert "test labels were not read" in out
    assert "Always giving the most frequent answer scores" in out
    assert "against features alone" in out
    assert "and 2 more; `--every` shows them" in out
    last = out.strip().splitlines()[-1]
    assert last.startswith(f"Run unalike train '{stored}' ")


@pytest.mark.long
def test_the_advised_command_runs(stored, capsys):
    asked = ["advise", stored, "--metric", "f1", "--both-ways", "--json"]
    assert main(asked) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["metric"] == "f1"
    grades = [row["expected"] for row in found["ranking"]]
    assert grades == sorted(grades, reverse=True)
    linkx = next(row for row in found["ranking"] if row["method"] == "linkx")
    lead = f"unalike train '{stored}' --metric f1 --both-ways linkx"
    assert linkx["command"] == lead
    words = ["train", stored, "--metric", "f1", "--both-ways", "linkx", "--epochs", "2"]
    assert main(words) == 0


def test_a_graph_without_splits_is_advised_on(tmp_path, capsys):
    save_graph(tmp_path / "bare", suiting(nodes=150))
    assert main(["advise", str(tmp_path / "bare"), "--every"]) == 0
    output = capsys.readouterr()
    assert "stored without splits" in output.err.replace("\n", " ")
    assert "--every" not in output.out


def test_mistakes(stored, capsys):
    assert main(["advise", stored, "--seconds", "0"]) == 1
    assert "--seconds is 0" in capsys.readouterr().err
    assert main(["advise", stored, "--metric", "auc"]) == 1
    assert "No metric 'auc'" in capsys.readouterr().err
    assert main(["advise", "nowhere"]) == 1
    assert "No dataset 'nowhere'" in capsys.readouterr().err
