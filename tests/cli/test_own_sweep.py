"""Sweeps on a graph of the user stop early as `train` does, and are reported."""

import json
import shlex

import pytest
import torch
from sweep_fixtures import SPLITS, stored

from unalike import Graph, random_splits, save_graph
from unalike.cli.main import main
from unalike.experiments.database import ResultsDatabase, result_from_row
from unalike.experiments.plan import SweepRequest, plan_sweep
from unalike.experiments.recipe import parse

URL = "sqlite:///results.db"
RECIPE = """
method = "link"
{above}

[grid]
lr = [0.05, 0.2]
epochs = {epochs}

[cells]
shop = {{ dataset = "{graph}" }}
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("own"), name="shop")


def recipe_text(graph, epochs=220, above=""):
    return RECIPE.format(graph=graph, epochs=epochs, above=above)


def views(graph, **values):
    recipe = parse(recipe_text(graph, **values), "own")
    plan = plan_sweep(SweepRequest(recipes=[recipe]))
    return [run.config.view.overrides for group in plan.groups for run in group.runs]


def run_json(capsys, *words):
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_only_long_runs_on_own_graphs_stop_early(graph):
    assert views(graph) == [{"patience": 200}] * 2 * SPLITS
    assert views(graph, epochs=200) == [{}] * 2 * SPLITS
    assert views(graph, above="patience = 5") == [{"patience": 5}] * 2 * SPLITS
    assert views("chameleon-twin")[0] == {}


@pytest.mark.long
def test_a_sweep_trains_as_train_does_and_is_reported(
    graph, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.toml").write_text(recipe_text(graph))
    (best,) = run_json(capsys, "sweep", "own.toml", "--device", "cpu")["best"]
    assert "--patience 200" in best["command"]
    words = shlex.split(best["command"])[1:]
    without = words.index("--patience")
    again = run_json(capsys, *words[:without], *words[without + 2 :])
    assert again["view"] == {"patience": 200}
    assert again["test_mean"] == pytest.approx(best["test"])
    with ResultsDatabase.read(URL) as results:
        rows = list(results.runs(curves=True))
    assert len(rows) == 2 * SPLITS
    epochs = [len(result_from_row(row).losses) for row in rows]
    assert min(epochs) < 220
    table = run_json(capsys, "table", "own.toml")
    assert f"{best['test']:.1f}" in json.dumps(table)
    for settings in ("grid", "any"):
        assert main(["table", "own.toml", "--settings", settings]) == 0
        assert f"{best['test']:.1f}" in capsys.readouterr().out
    report = run_json(capsys, "report", "--no-measures")
    assert report["runs"] == 2 * SPLITS
    files = (tmp_path / "site").rglob("*.js")
    data = "".join(file.read_text("utf-8") for file in files)
    assert f"unalike train {graph} --patience 200 link" in data


def test_stored_runs_of_all_epochs_still_count(graph, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.toml").write_text(recipe_text(graph))
    monkeypatch.setattr("unalike.experiments.config.OWN_PATIENCE", 1000)
    (old,) = run_json(capsys, "sweep", "own.toml", "--device", "cpu")["best"]
    assert "--patience" not in old["command"]
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert f"{old['test']:.1f}" in json.dumps(run_json(capsys, "table", "own.toml"))
    plan = run_json(capsys, "sweep", "own.toml", "--dry-run")
    assert plan["left"] == 2 * SPLITS


def test_tune_stops_early(graph, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["--trials", "1", "--device", "cpu", "--json", "link", "--epochs", "220"]
    assert main(["tune", graph, *words]) == 0
    assert "--patience 200" in json.loads(capsys.readouterr().out)["command"]


def test_methods_that_ignore_edge_weights_are_left_out(tmp_path):
    nodes = torch.arange(20)
    weighted = Graph.from_edges(
        nodes,
        nodes.roll(1),
        features=torch.rand(20, 3),
        labels=nodes % 2,
        weights=torch.rand(20) + 1,
    )
    splits = random_splits(weighted.labels, count=1)
    save_graph(tmp_path / "roads", weighted, splits=splits)
    text = recipe_text(tmp_path / "roads").replace('"link"', '"gat"')
    plan = plan_sweep(SweepRequest(recipes=[parse(text, "own")]))
    assert not plan.groups
    (reason,) = plan.missing.values()
    assert reason.startswith("gat ignores edge weights")
