"""What people with their own graph do wrong ends in one line that says why."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from unalike import ImportOptions, Training, UserError, import_graph, tune
from unalike.cli.main import main
from unalike.methods import METHODS

NODES = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    rng = np.random.default_rng(0)
    pd.DataFrame(
        {
            "id": np.arange(NODES),
            "kind": np.array(["good", "fraud"])[rng.integers(0, 2, NODES)],
            "age": rng.integers(20, 70, NODES),
            "price": [f"{number:.2f}" for number in rng.random(NODES)],
            "paid": [f"{number:.2f}".replace(".", ",") for number in rng.random(NODES)],
        }
    ).to_csv(folder / "people.csv", index=False)
    ends = rng.integers(0, NODES, (2, 200))
    table = {"from": ends[0], "to": ends[1], "amount": rng.random(200) + 0.1}
    pd.DataFrame(table).to_csv(folder / "edges.csv", index=False)
    return folder


@pytest.fixture
def here(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return folder


def imported(here, out, label="kind", **options):
    options = ImportOptions(label=label, **options)
    tables = [here / "edges.csv"], [here / "people.csv"]
    import_graph(*tables, out=out, options=options)
    return out


def error_of(capsys, *words):
    capsys.readouterr()
    assert main([*words]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


def test_tune_says_why_a_method_cannot_be_trained(here, capsys):
    weighted = imported(here, "weighted", weight="amount")
    error = error_of(capsys, "tune", weighted, "--trials", "1", "gat")
    assert "gat ignores edge weights" in error
    numbers = imported(here, "numbers", label="price", metric="r2")
    error = error_of(capsys, "tune", numbers, "--trials", "1", "views")
    assert "views needs classes" in error


def test_tune_shows_the_error_when_all_trials_fail(here, monkeypatch):
    graph = imported(here, "plain")

    def fail(*_, **__):
        raise UserError("The disk is full.")

    link = METHODS["link"](training=Training(epochs=2))
    url = "sqlite:///trials.db"
    with monkeypatch.context() as patched:
        patched.setattr("unalike.experiments.worker.run_stack", fail)
        with pytest.raises(UserError, match=r"No trial has finished.*The disk is full"):
            tune(graph, link, trials=2, results=url)
    assert len(tune(graph, link, trials=2, results=url).trials) == 2


def test_a_sweep_over_two_graphs_of_one_name_shows_their_paths(here, capsys):
    recipe = 'method = "link"\n[grid]\nepochs = 2\n[cells]\n'
    for part in ("x", "y"):
        imported(here, f"{part}/g", directed=part == "y")
        recipe += f'{part} = {{ dataset = "{part}/g" }}\n'
    Path("own.toml").write_text(recipe)
    assert main(["sweep", "own.toml", "--device", "cpu", "--json"]) == 0
    best = json.loads(capsys.readouterr().out)["best"]
    assert [row["dataset"] for row in best] == ["x/g", "y/g"]


def test_a_label_with_decimal_commas_is_explained(here):
    with pytest.raises(UserError, match=r"'paid' is not a column of numbers.*point"):
        imported(here, "paid", label="paid", metric="r2")


def test_a_name_that_is_no_dataset_tells_about_own_graphs(here, capsys):
    error = error_of(capsys, "train", "shop", "link")
    assert "No dataset 'shop'." in error
    assert "unalike import" in error
    imported(here, "x/g")
    error = error_of(capsys, "train", "x", "link")
    assert "x is a folder without graph.json" in error


def test_an_import_warns_about_the_name_of_a_dataset(here, capsys):
    words = [str(here / "edges.csv"), "--nodes", str(here / "people.csv")]
    assert main(["import", *words, "--label", "kind", "--out", "texas"]) == 0
    assert "note: texas is also the name of a dataset" in capsys.readouterr().out
    assert main(["import", *words, "--label", "kind", "--out", "a/texas"]) == 0
    assert "name of a dataset" not in capsys.readouterr().out


def test_measures_of_a_graph_without_labels_have_no_nan(here, capsys):
    import_graph([here / "edges.csv"], out="bare")
    assert main(["measure", "bare"]) == 0
    assert "nan" not in capsys.readouterr().out
