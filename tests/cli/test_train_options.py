"""`unalike train --patience` and `--class-weights` by number."""

import json
import shlex

import pandas as pd
import pytest

from unalike import (
    LINK,
    ImportOptions,
    RunOptions,
    Training,
    import_graph,
    open_graph,
    run,
)
from unalike.cli.main import main
from unalike.experiments import config

QUICK = ["linkx", "--hidden", "4", "--epochs", "60", "--lr", "0.05"]


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    folder = tmp_path_factory.mktemp("options")
    people = pd.DataFrame(
        {
            "id": range(80),
            "kind": ["fraud" if number % 5 == 0 else "good" for number in range(80)],
            "age": [(number * 37) % 50 for number in range(80)],
        }
    )
    edges = pd.DataFrame(
        {"source": range(80), "target": [(7 * n + 3) % 80 for n in range(80)]}
    )
    import_graph(edges, people, out=folder / "g", options=ImportOptions(label="kind"))
    return str(folder / "g")


def trained(capsys, graph, *words):
    words = ["train", graph, "--splits", "0", "--device", "cpu", "--json", *words]
    assert main([*words, *QUICK]) == 0
    return json.loads(capsys.readouterr().out)


def test_training_stops_when_no_epoch_is_better(graph, capsys, monkeypatch):
    from unalike.experiments import run as runs

    curves = []
    history = runs.training_history
    monkeypatch.setattr(
        runs, "training_history", lambda *a: curves.append(a[0]) or history(*a)
    )
    full, short = trained(capsys, graph), trained(capsys, graph, "--patience", "5")
    all_epochs, stopped = (len(curve.losses) for curve in curves)
    assert all_epochs == 60
    assert stopped == short["splits"][0]["best_epoch"] + 5 < 60
    assert short["view"] == {"patience": 5}
    assert full["view"] == {}
    words = shlex.split(short["command"])[1:]
    assert main([*words, "--device", "cpu", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["splits"][0]["test"] == pytest.approx(
        short["splits"][0]["test"]
    )


@pytest.mark.long
def test_graphs_of_the_user_stop_early_by_default(graph, capsys):
    words = ("train", graph, "link", "--splits", "0", "--json", "--lr", "0.1")
    views = []
    for more in ((), ("--patience", "500"), ("--epochs", "200")):
        assert main([*words, *more]) == 0
        document = json.loads(capsys.readouterr().out)
        views.append(document["view"])
        assert ("--patience" in document["command"]) == bool(document["view"])
    assert views == [{"patience": 200}, {"patience": 500}, {}]
    long = LINK(training=Training(epochs=201))
    (result,) = run(open_graph(graph).graph, long, splits=[0])
    assert result.view == {"patience": 200}


def test_a_checkpoint_without_patience_is_resumed_with_the_default(
    graph, tmp_path, monkeypatch
):
    long = LINK(training=Training(epochs=210))
    options = RunOptions(checkpoint=tmp_path / "saved")
    monkeypatch.setattr(config, "OWN_PATIENCE", 1000)
    before = run(graph, long, splits=[0], options=options)
    monkeypatch.undo()
    after = run(graph, long, splits=[0], options=options)
    assert (before[0].view, after[0].view) == ({}, {"patience": 200})
    assert after[0].test == before[0].test


def test_named_datasets_run_all_epochs(capsys):
    words = ("train", "chameleon-twin", "link", "--splits", "0", "--json")
    assert main([*words, "--epochs", "220"]) == 0
    assert json.loads(capsys.readouterr().out)["view"] == {}


def test_equal_weights_change_nothing_and_others_do(graph, capsys):
    plain = trained(capsys, graph)["splits"][0]
    equal = trained(capsys, graph, "--class-weights", "fraud=1,good=1")["splits"][0]
    only = trained(capsys, graph, "--class-weights", "fraud=1,good=0")["splits"][0]
    scores = ("train", "valid", "test")
    assert [plain[part] for part in scores] == [equal[part] for part in scores]
    assert only["train"] < plain["train"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--patience", "0"], "--patience is 0; at least 1 is needed."),
        (["--class-weights", "some"], "No class weights 'some'. Known: balanced"),
        (["--class-weights", "fraud=-1"], "are none of balanced and no NAME=NUMBER"),
        (["--class-weights", "fruad=2"], "no class 'fruad' to weigh. Did you mean 'fr"),
        (["--class-weights", "fraud=0"], "All class weights are 0"),
    ],
)
def test_mistakes_are_one_line(graph, capsys, words, message):
    assert main(["train", graph, *words, *QUICK]) == 1
    assert message in capsys.readouterr().err
